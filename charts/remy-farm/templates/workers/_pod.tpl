{{/*
remy-farm.workerPod: (list $ component arguments) -> the pod spec of a worker, both for the
coordinator's Jobs and for the Deployment.
*/}}
{{- define "remy-farm.workerPod" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $workers := $root.Values.workers -}}
serviceAccountName: {{ include "remy-farm.serviceAccount" (list $root "workers") }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- include "remy-farm.pullSecrets" $root }}
{{- include "remy-farm.priorityClass" (list $root "workers" $workers) }}
terminationGracePeriodSeconds: {{ $workers.terminationGracePeriodSeconds }}
securityContext:
  {{- include "remy-farm.podSecurity" $workers | nindent 2 }}
{{- include "remy-farm.placement" (list $root $workers $root.Values.capacity.spot) }}
{{ include "remy-farm.tolerations" $workers }}
{{- with $workers.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  - {{ toYaml . | nindent 4 | trim }}
    labelSelector:
      matchLabels:
        {{- include "remy-farm.selector" (list $root $component) | nindent 8 }}
  {{- end }}
{{- end }}
{{- with $workers.extraInitContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: worker
    image: {{ include "remy-farm.image" (list $root $workers.image) | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args:
      - --metrics-listen=0.0.0.0:9391
      {{- range index . 2 }}
      - {{ . | quote }}
      {{- end }}
      {{- range $workers.extraArgs }}
      - {{ . | quote }}
      {{- end }}
    env:
      {{- if or (dig "requests" "cpu" "" $workers.resources) (dig "limits" "cpu" "" $workers.resources) }}
      # One thread per requested CPU, rounded up, instead of per CPU of the node; also if a design
      # requests another number.
      - name: REMY_FARM_WORKER_THREADS
        valueFrom: {resourceFieldRef: {containerName: worker, resource: requests.cpu}}
      {{- end }}
      {{- include "remy-farm.workerEnvironment" $root | nindent 6 }}
    ports:
      - {name: metrics, containerPort: 9391}
    resources:
      {{- toYaml $workers.resources | nindent 6 }}
    securityContext:
      {{- toYaml $workers.securityContext | nindent 6 }}
    volumeMounts:
      {{- include "remy-farm.workerMounts" $root | nindent 6 }}
volumes:
  {{- include "remy-farm.workerVolumes" $root | nindent 2 }}
{{- end -}}
