{{/*
remy-farm.jobTemplate: the batch/v1 Job that the coordinator makes for each design. It adds the name,
the design's id, and how many workers.
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
      # The worker's own codes for what would be the same on any node: flags or files that cannot be
      # right, a token that is not accepted, and a simulator that is not the coordinator's.
      - action: FailJob
        onExitCodes: {containerName: worker, operator: In, values: [2, 4, 7]}
      # Preempted, evicted, drained, or its node is gone: no failure, however often.
      - action: Ignore
        onPodConditions:
          - {type: DisruptionTarget, status: "True"}
      # Told to end, and did: there are to be fewer workers.
      - action: Ignore
        onExitCodes: {containerName: worker, operator: In, values: [143]}
      # Nobody saw it end: its node was started anew before Kubernetes missed it.
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
