{{/* The coordinator's file of tokens, from a dictionary of role to token. */}}
{{- define "remy-farm.tokensFile" -}}
tokens:
{{- range $role, $token := . }}
  - {name: {{ $role }}, role: {{ $role }}, token: {{ $token | quote }}}
{{- end }}
{{- end -}}
