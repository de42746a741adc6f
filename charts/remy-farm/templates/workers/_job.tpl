{{/*
remy-farm.jobTemplate: the batch/v1 Job that the coordinator creates for each design, to which it
adds the name, the design's id and the number of workers.
*/}}
{{- define "remy-farm.jobTemplate" -}}
{{- $jobs := .Values.workers.jobs -}}
metadata:
  labels:
    {{- include "remy-farm.labels" (list . "worker-job") | nindent 4 }}
    {{- with $jobs.queueName }}
    kueue.x-k8s.io/queue-name: {{ . | quote }}
    {{- end }}
spec:
  backoffLimit: {{ $jobs.backoffLimit }}
  {{- with $jobs.activeDeadlineSeconds }}
  activeDeadlineSeconds: {{ . }}
  {{- end }}
  ttlSecondsAfterFinished: {{ $jobs.ttlSecondsAfterFinished }}
  podReplacementPolicy: Failed
  podFailurePolicy:
    rules:
      # Exit codes of failures that do not depend on the node: invalid flags or files, a rejected
      # token, and a simulator that differs from the coordinator's.
      - action: FailJob
        onExitCodes: {containerName: worker, operator: In, values: [2, 4, 7]}
      # Disruptions (preemption, eviction, drain, lost node) do not count as failures.
      - action: Ignore
        onPodConditions:
          - {type: DisruptionTarget, status: "True"}
      # Ended by SIGTERM, because the Job is scaled down.
      - action: Ignore
        onExitCodes: {containerName: worker, operator: In, values: [143]}
      # Unknown end: the node restarted before Kubernetes noticed that it was down.
      - action: Ignore
        onExitCodes: {containerName: worker, operator: In, values: [255]}
  template:
    metadata:
      labels:
        {{- include "remy-farm.labels" (list . "worker-job") | nindent 8 }}
        remy-farm/worker: "true"
        {{- with .Values.workers.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .Values.workers.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      restartPolicy: Never
      {{- include "remy-farm.workerPod" (list . "worker-job" (list "--exit-when-idle" "--interrupted-exit-code=143")) | nindent 6 }}
{{- end -}}
