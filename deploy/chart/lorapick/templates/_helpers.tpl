{{- define "lorapick.name" -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "lorapick.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "lorapick.name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "lorapick.pool" -}}
{{- .Values.pool.name | default (include "lorapick.name" .) -}}
{{- end -}}

{{- define "lorapick.lease" -}}
lorapick-{{ include "lorapick.pool" . }}
{{- end -}}

{{- define "lorapick.selector" -}}
app.kubernetes.io/name: lorapick
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "lorapick.labels" -}}
{{ include "lorapick.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* lorapick.yaml: what the chart knows, and over it what .Values.config says. */}}
{{- define "lorapick.config" -}}
{{- $server := dict
  "extproc" (printf "0.0.0.0:%v" .Values.ports.extproc)
  "health" (printf "0.0.0.0:%v" .Values.ports.health)
  "metrics" (printf "0.0.0.0:%v" .Values.ports.metrics)
  "admin" "127.0.0.1:9091"
  "body" "full_duplex_streamed"
  "drain_timeout" (printf "%vs" .Values.drainSeconds) -}}
{{- $kubernetes := dict "pool" (include "lorapick.pool" .) "namespace" .Release.Namespace -}}
{{- $known := dict "server" $server "discovery" (dict "kubernetes" $kubernetes) -}}
{{- mustMergeOverwrite $known (deepCopy .Values.config) | toYaml -}}
{{- end -}}
