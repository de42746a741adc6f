{{/* All names by which the coordinator and the farm's page may be called, localhost for a port-forward. */}}
{{- define "remy-farm.certificateNames" -}}
{{- $name := include "remy-farm.name" (list . "coordinator") -}}
- {{ include "remy-farm.host" . }}
- {{ $name }}
- {{ $name }}.{{ .Release.Namespace }}
- {{ include "remy-farm.host" . }}.{{ .Values.clusterDomain }}
- localhost
{{- if .Values.ui.enabled }}
{{ include "remy-farm.uiNames" . }}
{{- end }}
{{- range .Values.tls.extraNames }}
- {{ . | quote }}
{{- end }}
{{- end -}}
