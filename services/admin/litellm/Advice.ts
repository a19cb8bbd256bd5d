/** What to do about each setting of LiteLLM that has no counterpart. */
import { formatPath } from "../../../shared/contract/SchemaErrors.ts"

/** Advice by pattern of a setting's path without indexes. The first match applies. */
const table: ReadonlyArray<readonly [RegExp, string]> = [
  [/^model_list\.model_info\.(?:id|db_model|created_|updated_)/, "not needed: the catalogue has no ids of targets"],
  [/^model_list\.model_info\.supports_/, "not needed: see `tools`, `reasoning` and `inputModalities` of the catalogue"],
  [
    /^model_list\..*cost/,
    "the catalogue has no such price: only a flat one per token, image, second, character or query"
  ],
  [/^model_list\.litellm_params\.(?:tags|tag_regex)/, "requests are not routed by tags: give the deployment a name"],
  [/^model_list\.litellm_params\.(?:max_budget|budget_duration)/, "budgets belong to keys, not to targets"],
  [
    /^model_list\.litellm_params\.(?:organization|extra_headers|headers)/,
    "providers get no further headers: use a key of that organisation"
  ],
  [
    /^model_list\.litellm_params\.(?:aws_|vertex_|azure_|tenant_id|client_)/,
    "write the provider by hand with a package of the AI SDK"
  ],
  [
    /^model_list\.litellm_params\.(?:drop_params|additional_drop_params|modify_params)/,
    "not needed: fields that a provider's format does not have are named in `x-translation-warnings`"
  ],
  [
    /^model_list\.litellm_params\.(?:mock_response|configurable_clientside_auth_params)/,
    "the gateway has nothing like it: remove it"
  ],
  [
    /^model_list\.litellm_params\.(?:itpm|otpm|tpd|rpd|daily_reset_time)/,
    "limits of providers are requests and tokens per minute, and concurrent calls"
  ],
  [/^model_list\.litellm_params\./, "a default for requests, or an option of LiteLLM's client: let clients send it"],
  [/content_policy_fallbacks/, "a refusal is passed on to the client, never to another model"],
  [/fallbacks/, "name the model only: fallbacks have no parameters of their own"],
  [/^router_settings\.(?:redis_|cache_)/, "not needed: replicas share limits and state through NATS"],
  [
    /^router_settings\.(?:allowed_fails|retry_policy|allowed_fails_policy|model_group_retry_policy)/,
    "see `breaker` and `retry` of providers: a share of failures opens a circuit"
  ],
  [
    /^router_settings\.enable_pre_call_checks/,
    "not needed: requests that are too long go to targets with a larger `contextWindow`"
  ],
  [/^router_settings\.(?:enable_tag_filtering|tag_)/, "requests are not routed by tags"],
  [
    /^litellm_settings\.(?:drop_params|modify_params)/,
    "not needed: fields that a provider's format does not have are named in `x-translation-warnings`"
  ],
  [/^litellm_settings\.cache/, "there is no cache of answers; prompt caches of providers are used, see `sticky`"],
  [
    /callback|^litellm_settings\.(?:langfuse|otel|set_verbose|json_logs|turn_off_message_logging|redact)/,
    "export traces and metrics by OTEL_EXPORTER_OTLP_ENDPOINT and Prometheus instead"
  ],
  [/guardrails?\b/, "there is no guardrail of this kind"],
  [
    /^litellm_settings\.(?:default_team_|default_internal_user_|default_key_generate|upperbound_key_generate)/,
    "there are no such defaults: state limits when you create a key"
  ],
  [
    /^litellm_settings\.(?:max_budget|budget_duration)/,
    "there is no budget for the whole gateway: give budgets to keys"
  ],
  [
    /^general_settings\.master_key/,
    "administrators sign in with CONSOLE_ADMIN_TOKEN; clients that use the master key need a key of their own"
  ],
  [/^general_settings\.database_/, "not needed: state is in NATS. Dump the database to import its keys"],
  [
    /^general_settings\.(?:coordination_)?redis|^general_settings\.use_redis/,
    "not needed: replicas share state through NATS"
  ],
  [/^general_settings\.(?:store_model_in_db|store_prompts)/, "not needed: models are in the catalogue only"],
  [
    /^general_settings\.(?:custom_auth|enable_jwt_auth|litellm_jwtauth|litellm_key_header_name)/,
    "clients send `Authorization: Bearer`, or the header of their vendor's client"
  ],
  [/^general_settings\.(?:pass_through_endpoints)/, "the gateway passes on no paths besides its operations"],
  [/^general_settings\.(?:alerting|alert_|slack_)/, "see the alerts in deploy/observability"],
  [/^general_settings\.(?:background_health_checks|health_check_)/, "not needed: circuit breakers follow real calls"],
  [/^(?:mcp_servers|mcp_)/, "the gateway is no MCP gateway: connect agents to these servers directly"],
  [
    /^(?:finetune_settings|files_settings)/,
    "files and batches belong to the gateway; fine-tuning is done at the provider"
  ],
  [/^include/, "import the merged file: `include` is not followed"],
  [/^credential_list\./, "of credentials only `api_key` and `api_base` are read"]
]

const unknown = "no counterpart"

/** The advice about a setting. Ignores the indexes in its path. */
export const adviceFor = (path: ReadonlyArray<PropertyKey>): string => {
  const name = formatPath(path.filter((key) => typeof key !== "number"))
  return table.find(([pattern]) => pattern.test(name))?.[1] ?? unknown
}
