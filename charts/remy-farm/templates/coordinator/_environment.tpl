{{/* Returns the Secret with Redis' password as {name, key}; empty if there is none. */}}
{{- define "remy-farm.redisPasswordSecret" -}}
{{- if .Values.redis.enabled -}}
name: {{ include "remy-farm.redisSecret" . }}
key: password
{{- else if .Values.redis.external.passwordSecret.name -}}
name: {{ .Values.redis.external.passwordSecret.name }}
key: {{ .Values.redis.external.passwordSecret.key }}
{{- end -}}
{{- end -}}

{{- define "remy-farm.coordinatorEnvironment" -}}
{{- if include "remy-farm.redisPasswordSecret" . }}
- {name: REMY_FARM_REDIS_PASSWORD_FILE, value: /etc/remy-farm/redis/password}
{{- end }}
{{- if eq .Values.workers.backend "ray" }}
- {name: REMY_FARM_RAY_ADDRESS, value: {{ include "remy-farm.rayAddress" . | quote }}}
{{- end }}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- with .Values.coordinator.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
