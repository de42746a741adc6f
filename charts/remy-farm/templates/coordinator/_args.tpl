{{/* The coordinator's arguments, from the values. */}}
{{- define "remy-farm.coordinatorArgs" -}}
{{- $values := .Values.coordinator -}}
- coordinator
- --listen=0.0.0.0:7390
- --health-listen=0.0.0.0:7391
- --metrics-listen=0.0.0.0:9390
- --store={{ include "remy-farm.storeUrl" . }}
{{- if $values.acceptDataLoss }}
- --accept-data-loss
{{- end }}
{{- if eq .Values.workers.backend "ray" }}
- --evaluator=ray
- --ray-listen=0.0.0.0:7392
{{- else }}
- --evaluator=workers
{{- end }}
{{- if eq .Values.workers.backend "jobs" }}
- --kubernetes-workers=/etc/remy-farm/launcher/launcher.yaml
{{- end }}
{{- if .Values.designJobs.enabled }}
- --kubernetes-design-jobs
{{- end }}
- --tokens-file=/etc/remy-farm/tokens/tokens.yaml
{{- if .Values.tls.enabled }}
- --tls-cert=/etc/remy-farm/tls/tls.crt
- --tls-key=/etc/remy-farm/tls/tls.key
{{- else }}
- --insecure
{{- end }}
- --maximum-running-jobs={{ $values.maximumRunningJobs }}
- --maximum-running-jobs-per-user={{ $values.maximumRunningJobsPerUser }}
{{- with $values.pricePerCpuHour }}
- --price-per-cpu-hour={{ . }}
{{- end }}
{{- if not $values.reflection }}
- --no-reflection
{{- end }}
- --log-level={{ $values.logLevel }}
{{- with .Values.mirror.url }}
- --mirror={{ . }}
{{- end }}
# Reproductions of tasks that crash workers (dead letters). Without a mirror they are lost with the
# coordinator's pod.
- --reproductions={{ with .Values.mirror.url }}{{ trimSuffix "/" . }}{{ else }}/tmp{{ end }}/reproductions
{{- with .Values.mirror.retentionDays }}
- --retention-days={{ . }}
{{- end }}
- --grace-seconds={{ max 1 (sub $values.terminationGracePeriodSeconds 10) }}
{{- range $values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}
