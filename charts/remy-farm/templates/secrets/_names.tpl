{{/* All host names of the coordinator and of the page; localhost is for port-forwards. */}}
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
