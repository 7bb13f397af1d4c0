// The reasons why fields of LiteLLM's file are not taken over, and what to do instead.

/** A field of LiteLLM's file that is not taken over, or not exactly. */
export interface ImportNote {
  readonly line: number;
  /** Its place, such as `router_settings.num_retries`. */
  readonly what: string;
  readonly why: string;
}

const FALLBACKS = 'a request is served by the model that it names; deployments of one model are tried in turn';
const RETRIES = 'a call is tried again at the next deployment of the model, and at none twice';
const CACHE = 'replies are not kept: no client gets what was made for another';
const CALLBACKS = 'every request is recorded anyway: see GET /v1/generation, usage reports and /metrics';
const DATABASE = 'DATABASE_URL of the environment names the database; its contents are not taken over';
const FIXED = 'parameters are relayed as the client sends them: none is added, changed or dropped';
const REQUEST_LIMIT = 'limits are set for organizations, teams, members and keys (limits: requests_per_minute, ...)';
const BUDGETS = 'budgets are limits of an organization, team, member or key (limits: kind: budget)';
const STRATEGY = 'the first deployment is preferred, the others follow when it fails or cools down';
const CONVERSION = 'requests are relayed in the API that the client speaks: none is converted';

/** By the name of the field, wherever it occurs. */
const REASONS: Readonly<Record<string, string>> = {
  master_key: 'ADMIN_TOKEN of the environment administers; clients have keys of an organization',
  database_url: DATABASE,
  store_model_in_db: 'models are changed by "tollgate apply", or over /v1/admin/models',
  fallbacks: FALLBACKS,
  default_fallbacks: FALLBACKS,
  context_window_fallbacks: FALLBACKS,
  content_policy_fallbacks: FALLBACKS,
  num_retries: RETRIES,
  max_retries: RETRIES,
  retry_policy: RETRIES,
  allowed_fails: 'a deployment cools down by itself, as its replies say',
  cooldown_time: 'a deployment cools down by itself, as its replies say',
  cache: CACHE,
  cache_params: CACHE,
  caching_groups: CACHE,
  callbacks: CALLBACKS,
  success_callback: CALLBACKS,
  failure_callback: CALLBACKS,
  service_callback: CALLBACKS,
  alerting: '/metrics has what alarms are made of',
  drop_params: FIXED,
  modify_params: FIXED,
  additional_drop_params: FIXED,
  allowed_openai_params: FIXED,
  temperature: FIXED,
  top_p: FIXED,
  seed: FIXED,
  stop: FIXED,
  max_tokens: FIXED,
  extra_body: FIXED,
  thinking: FIXED,
  reasoning_effort: FIXED,
  rpm: REQUEST_LIMIT,
  tpm: REQUEST_LIMIT,
  max_parallel_requests: REQUEST_LIMIT,
  global_max_parallel_requests: REQUEST_LIMIT,
  max_budget: BUDGETS,
  budget_duration: BUDGETS,
  weight: STRATEGY,
  routing_strategy: STRATEGY,
  routing_strategy_args: STRATEGY,
  tags: 'deployments are not chosen by tags: organizations, teams and keys can have models of their own',
  enable_tag_filtering: 'deployments are not chosen by tags',
  region_name: 'a region is part of the address of a provider (with: region, or base_url)',
  stream_timeout: 'timeouts are set for a provider: connect_ms, first_byte_ms, idle_ms, total_ms',
  guardrails: 'guardrails are set for an organization',
  environment_variables: 'variables are set where tollgate is started',
  pass_through_endpoints: 'only the APIs of models are relayed',
  include: 'the files that it names are imported one by one',
  redis_host: 'limits and credit are shared through Postgres',
  redis_port: 'limits and credit are shared through Postgres',
  redis_password: 'limits and credit are shared through Postgres',
  redis_url: 'limits and credit are shared through Postgres',
  finetune_settings: 'only the APIs of models are relayed',
  files_settings: 'only the APIs of models are relayed',
  mcp_servers: 'only the APIs of models are relayed',
  vector_store_registry: 'only the APIs of models are relayed',
  use_in_pass_through: 'only the APIs of models are relayed',
  custom_auth: 'clients have keys of an organization',
  default_team_settings: 'teams belong to organizations: "tollgate team create"',
  set_verbose: 'LOG_LEVEL of the environment',
  json_logs: 'logs are JSON already',
  port: 'PORT of the environment',
  host: 'HOST of the environment',
  telemetry: 'nothing is sent to anybody',
  aws_access_key_id: 'it takes aws_secret_access_key beside it',
  aws_secret_access_key: 'it takes aws_access_key_id beside it',
  aws_profile_name: 'a Bedrock API key is read from AWS_BEARER_TOKEN_BEDROCK, or token has a key of IAM',
  azure_ad_token: 'token: { kind: entra } obtains one with an application of the tenant',
  aws_role_name: 'a Bedrock API key is read from AWS_BEARER_TOKEN_BEDROCK',
  litellm_session_id: CONVERSION,
};

export function reasonOf(name: string): string {
  if (name.startsWith('mock_')) return 'there are no mocked replies';
  return (Object.hasOwn(REASONS, name) ? REASONS[name] : undefined) ?? 'there is nothing like it';
}
