{{/* Address of the Ray cluster, in Ray's notation. */}}
{{- define "remy-farm.rayAddress" -}}
{{- if .Values.workers.ray.address -}}
{{- .Values.workers.ray.address -}}
{{- else if .Values.workers.ray.operator -}}
ray://{{ include "remy-farm.fullname" . }}-head-svc.{{ .Release.Namespace }}.svc:10001
{{- else -}}
ray://{{ include "remy-farm.name" (list . "ray-head") }}.{{ .Release.Namespace }}.svc:10001
{{- end -}}
{{- end -}}

{{/* remy-farm.rayPod: (list $ component component-values resources capacity-labels priority) -> the pod spec. */}}
{{- define "remy-farm.rayPod" -}}
{{- $root := index . 0 -}}
{{- $component := index . 2 -}}
serviceAccountName: {{ include "remy-farm.serviceAccount" (list $root "workers") }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- include "remy-farm.pullSecrets" $root }}
{{- include "remy-farm.priorityClass" (list $root (index . 5) $component) }}
terminationGracePeriodSeconds: {{ $root.Values.workers.terminationGracePeriodSeconds }}
securityContext:
  {{- include "remy-farm.podSecurity" $component | nindent 2 }}
{{- include "remy-farm.placement" (list $root $component (index . 4)) }}
{{ include "remy-farm.tolerations" $component }}
volumes:
  - name: tmp
    emptyDir: {}
  # Ray's object store, for tables and outcomes in transit.
  - name: shm
    emptyDir: {medium: Memory, sizeLimit: 512Mi}
{{- end -}}

{{/* remy-farm.rayContainer: (list $ resources) -> common fields of Ray's containers. */}}
{{- define "remy-farm.rayContainer" -}}
{{- $root := index . 0 -}}
image: {{ include "remy-farm.image" (list $root $root.Values.workers.ray.image) | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
env:
  - {name: HOME, value: /tmp}
  - {name: RAY_USAGE_STATS_ENABLED, value: "0"}
  {{- with $root.Values.workers.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
resources:
  {{- toYaml (index . 1) | nindent 2 }}
securityContext:
  {{- toYaml $root.Values.workers.securityContext | nindent 2 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: shm, mountPath: /dev/shm}
{{- end -}}

{{/* remy-farm.rayProbes: the name of a port that accepts connections while the node is part of the cluster.

They replace the operator's probes, which need Ray's dashboard; the image does not contain it.
*/}}
{{- define "remy-farm.rayProbes" -}}
# Ray starts in seconds, but may take minutes on busy nodes.
startupProbe:
  tcpSocket: {port: {{ . }}}
  periodSeconds: 5
  failureThreshold: 120
readinessProbe:
  tcpSocket: {port: {{ . }}}
  periodSeconds: 5
livenessProbe:
  tcpSocket: {port: {{ . }}}
  periodSeconds: 10
  failureThreshold: 12
{{- end -}}
