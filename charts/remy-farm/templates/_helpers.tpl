{{/* Names and labels. */}}

{{- define "remy-farm.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 34 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 34 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 34 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* remy-farm.name: (list $ "coordinator") -> the name of a component's objects. */}}
{{- define "remy-farm.name" -}}
{{- printf "%s-%s" (include "remy-farm.fullname" (index . 0)) (index . 1) -}}
{{- end -}}

{{/* remy-farm.selector: (list $ "coordinator") -> the immutable selector labels. */}}
{{- define "remy-farm.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ include "remy-farm.fullname" $root }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "remy-farm.labels" -}}
{{- $root := index . 0 -}}
{{ include "remy-farm.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: remy-farm
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* remy-farm.image: (list $ .Values.coordinator.image) -> an image reference. */}}
{{- define "remy-farm.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- with $root.Values.image.registry -}}{{ trimSuffix "/" . }}/{{- end -}}
{{- include "remy-farm.reference" (list $image $root.Chart.AppVersion) -}}
{{- end -}}

{{/* The coordinator's image; on Ray, the same as the actors'. */}}
{{- define "remy-farm.coordinatorImage" -}}
{{- $onRay := eq .Values.workers.backend "ray" -}}
{{- include "remy-farm.image" (list . (ternary .Values.workers.ray.image .Values.coordinator.image $onRay)) -}}
{{- end -}}

{{/* Redis' image, without remy-farm's registry. */}}
{{- define "remy-farm.redisImage" -}}
{{- include "remy-farm.reference" (list .Values.redis.image "") -}}
{{- end -}}

{{/* remy-farm.reference: (list image default-tag) -> the name with its digest or, if there is none, its tag. */}}
{{- define "remy-farm.reference" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{- $image.repository }}@{{ $image.digest -}}
{{- else -}}
{{- $image.repository }}:{{ default (index . 1) $image.tag -}}
{{- end -}}
{{- end -}}

{{- define "remy-farm.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* remy-farm.serviceAccount: (list $ "coordinator") -> the service account of a component. */}}
{{- define "remy-farm.serviceAccount" -}}
{{- $root := index . 0 -}}
{{- $account := (index $root.Values (index . 1)).serviceAccount -}}
{{- if $account.create -}}
{{- default (include "remy-farm.name" .) $account.name -}}
{{- else -}}
{{- default "default" $account.name -}}
{{- end -}}
{{- end -}}

{{/* remy-farm.podSecurity: component-values -> the security context of its pods; the component's `user`, if set,
is the default for user and groups. */}}
{{- define "remy-farm.podSecurity" -}}
{{- $context := deepCopy .podSecurityContext -}}
{{- with .user -}}
{{- $context = merge $context (dict "runAsUser" . "runAsGroup" . "fsGroup" .) -}}
{{- end -}}
{{- toYaml $context -}}
{{- end -}}

{{/* remy-farm.placement: (list $ component-values capacity-labels) -> node selector and affinity. */}}
{{- define "remy-farm.placement" -}}
{{- $component := index . 1 -}}
{{- $labels := index . 2 -}}
{{- with $component.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $component.affinity }}
affinity:
  {{- toYaml $component.affinity | nindent 2 }}
{{- else if $labels }}
affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      {{- range $labels }}
      - weight: 100
        preference:
          matchExpressions:
            - {key: {{ .key | quote }}, operator: In, values: [{{ .value | quote }}]}
      {{- end }}
{{- end }}
{{- end -}}

{{/* remy-farm.tolerations: component-values -> its tolerations, including those of unreachable nodes. */}}
{{- define "remy-farm.tolerations" -}}
tolerations:
  {{- if .unreachableSeconds }}
  - key: node.kubernetes.io/unreachable
    operator: Exists
    effect: NoExecute
    tolerationSeconds: {{ .unreachableSeconds }}
  - key: node.kubernetes.io/not-ready
    operator: Exists
    effect: NoExecute
    tolerationSeconds: {{ .unreachableSeconds }}
  {{- end }}
  {{- with .tolerations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* remy-farm.priorityClass: (list $ class component-values) -> the configured class, or the chart's. */}}
{{- define "remy-farm.priorityClass" -}}
{{- $root := index . 0 -}}
{{- if (index . 2).priorityClassName }}
priorityClassName: {{ (index . 2).priorityClassName }}
{{- else if $root.Values.priorityClasses.create }}
priorityClassName: {{ printf "%s-%s" $root.Release.Namespace (include "remy-farm.name" .) }}
{{- end }}
{{- end -}}

{{/* remy-farm.relabelings: (list $ monitor-values) -> relabelings with the label `farm`, which tells
farms of a namespace apart; the operator adds the namespace. */}}
{{- define "remy-farm.relabelings" -}}
- {targetLabel: farm, replacement: {{ include "remy-farm.fullname" (index . 0) }}}
{{- with (index . 1).relabelings }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The coordinator's host name inside the cluster. */}}
{{- define "remy-farm.host" -}}
{{- printf "%s.%s.svc" (include "remy-farm.name" (list . "coordinator")) .Release.Namespace -}}
{{- end -}}

{{- define "remy-farm.address" -}}
{{- printf "%s:%v" (include "remy-farm.host" .) .Values.coordinator.service.port -}}
{{- end -}}

{{/* Host names of the page, besides those of a port-forward. */}}
{{- define "remy-farm.uiNames" -}}
{{- $name := include "remy-farm.name" (list . "ui") -}}
{{- $host := printf "%s.%s.svc" $name .Release.Namespace -}}
{{- $names := list $host $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s" $host .Values.clusterDomain) -}}
{{- with .Values.ui.ingress.host -}}{{- $names = append $names . -}}{{- end -}}
{{- concat $names .Values.ui.hosts | uniq | toYaml -}}
{{- end -}}

{{- define "remy-farm.uiScheme" -}}
{{- ternary "HTTPS" "HTTP" .Values.tls.enabled -}}
{{- end -}}

{{/* Names of Secrets: created by the chart, or existing. */}}
{{- define "remy-farm.tlsSecret" -}}
{{- default (include "remy-farm.name" (list . "tls")) .Values.tls.existingSecret -}}
{{- end -}}

{{- define "remy-farm.tokensSecret" -}}
{{- default (include "remy-farm.name" (list . "tokens")) .Values.tokens.existingSecret -}}
{{- end -}}

{{- define "remy-farm.redisSecret" -}}
{{- default (include "remy-farm.name" (list . "redis")) .Values.redis.existingSecret -}}
{{- end -}}

{{- define "remy-farm.storeUrl" -}}
{{- $external := .Values.redis.external -}}
{{- if .Values.redis.enabled -}}
{{- printf "redis://%s:6379/0" (include "remy-farm.name" (list . "redis")) -}}
{{- else if $external.caSecret.name -}}
{{- $external.url }}{{ ternary "&" "?" (contains "?" $external.url) }}tls_ca=/etc/remy-farm/redis-ca/{{ $external.caSecret.key -}}
{{- else -}}
{{- required "redis.external.url is required if redis.enabled is false" $external.url -}}
{{- end -}}
{{- end -}}

{{/* remy-farm.kept: (list $ secret-name key) -> the key's existing value in base64; empty if none. */}}
{{- define "remy-farm.kept" -}}
{{- $root := index . 0 -}}
{{- $secret := lookup "v1" "Secret" $root.Release.Namespace (index . 1) -}}
{{- if $secret -}}{{- index (default dict $secret.data) (index . 2) -}}{{- end -}}
{{- end -}}

{{/* Environment, volumes and mounts of workers, for all backends. */}}
{{- define "remy-farm.workerEnvironment" -}}
- {name: REMY_FARM_COORDINATOR, value: {{ include "remy-farm.address" . | quote }}}
- {name: REMY_FARM_TOKEN_FILE, value: /etc/remy-farm/token/token}
{{- if .Values.tls.enabled }}
- {name: REMY_FARM_TLS_CA, value: /etc/remy-farm/tls/ca.crt}
{{- else }}
- {name: REMY_FARM_INSECURE, value: "true"}
{{- end }}
{{- with .Values.workers.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "remy-farm.workerMounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: token, mountPath: /etc/remy-farm/token, readOnly: true}
{{- if .Values.tls.enabled }}
- {name: tls, mountPath: /etc/remy-farm/tls, readOnly: true}
{{- end }}
{{- with .Values.workers.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "remy-farm.workerVolumes" -}}
- name: tmp
  emptyDir: {}
- name: token
  secret:
    secretName: {{ include "remy-farm.tokensSecret" . }}
    items: [{key: worker, path: token}]
    defaultMode: 0440
{{- if .Values.tls.enabled }}
- name: tls
  secret:
    secretName: {{ include "remy-farm.tlsSecret" . }}
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- with .Values.workers.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* "yes" if the coordinator uses the API server, otherwise empty. */}}
{{- define "remy-farm.needsApi" -}}
{{- if or (eq .Values.workers.backend "jobs") .Values.designJobs.enabled -}}yes{{- end -}}
{{- end -}}
