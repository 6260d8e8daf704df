{{- define "lorapick.name" -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "lorapick.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "lorapick.name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "lorapick.pool" -}}
{{- $said := dig "discovery" "kubernetes" "pool" "" .Values.config -}}
{{- $said | default .Values.pool.name | default (include "lorapick.name" .) -}}
{{- end -}}

{{/* Not empty where labels say which pods are ours, in place of a pool. */}}
{{- define "lorapick.labelled" -}}
{{- if dig "discovery" "kubernetes" "selector" dict .Values.config }}yes{{ end -}}
{{- end -}}

{{/* Where the pool, its pods and the lease are. */}}
{{- define "lorapick.namespace" -}}
{{- dig "discovery" "kubernetes" "namespace" "" .Values.config | default .Release.Namespace -}}
{{- end -}}

{{- define "lorapick.lease" -}}
{{- dig "discovery" "kubernetes" "leader" "lease" "" .Values.config | default (printf "lorapick-%s" (ternary "pods" (include "lorapick.pool" .) (ne (include "lorapick.labelled" .) ""))) -}}
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
{{- with .Values.ports.admin }}{{- $_ := set $server "admin" (printf "0.0.0.0:%v" .) -}}{{- end -}}
{{- with .Values.tokens.admin.secret }}{{- $_ := set $server "admin_token_file" "/etc/lorapick-tokens/admin/token" -}}{{- end -}}
{{- with .Values.tokens.metrics.secret }}{{- $_ := set $server "metrics_token_file" "/etc/lorapick-tokens/metrics/token" -}}{{- end -}}
{{- $kubernetes := dict "namespace" .Release.Namespace -}}
{{- if not (include "lorapick.labelled" .) }}{{- $_ := set $kubernetes "pool" (include "lorapick.pool" .) -}}{{- end -}}
{{- $known := dict "server" $server "discovery" (dict "kubernetes" $kubernetes) -}}
{{- $tls := dict -}}
{{- if .Values.tls.secret -}}
{{- $_ := set $tls "certificate" "/etc/lorapick-tls/tls.crt" -}}
{{- $_ := set $tls "key" "/etc/lorapick-tls/tls.key" -}}
{{- end -}}
{{- if .Values.tls.clientCaSecret -}}
{{- $_ := set $tls "extproc" (dict "client_ca" "/etc/lorapick-client-ca/ca.crt") -}}
{{- end -}}
{{- with $tls }}{{- $_ := set $known "tls" . -}}{{- end -}}
{{- with .Values.peers -}}
{{- if .redis -}}
{{- $peers := dict "redis" .redis "fleet" (include "lorapick.pool" $) -}}
{{- with .username }}{{- $_ := set $peers "username" . -}}{{- end -}}
{{- with .passwordSecret }}{{- $_ := set $peers "password" "LORAPICK_PEERS_PASSWORD" -}}{{- end -}}
{{- with .caSecret }}{{- $_ := set $peers "tls" (dict "ca" "/etc/lorapick-peers-ca/ca.crt") -}}{{- end -}}
{{- $_ := set $known "peers" $peers -}}
{{- end -}}
{{- end -}}
{{- mustMergeOverwrite $known (deepCopy .Values.config) | toYaml -}}
{{- end -}}
