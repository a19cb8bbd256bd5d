/** `/api/keys/{id}/webhook` and `/api/teams/{id}/webhook`: webhooks for events about tasks and budgets, and their deliveries. */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { TeamId } from "../../../shared/keys/KeySettings.ts"
import { KeyId } from "../../../shared/usage/UsageEvent.ts"
import { Admin } from "./Admin.ts"
import { maxIdLength, NotFound, Unavailable, withMessage } from "./Errors.ts"
import { KeyUnknown } from "./Keys.ts"
import { TeamUnknown } from "./Teams.ts"

export class WebhookUnknown extends Schema.TaggedError<WebhookUnknown>()("WebhookUnknown", {
  ...withMessage("There is no webhook, or the delivery is unknown or has expired")
}, { httpApiStatus: 404 }) {}

const isUrl = (text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === ""
}

const WebhookUrl = Schema.String.check(
  Schema.isMaxLength(2_048),
  Schema.makeFilter(isUrl, {
    expected: "an http(s) URL without a user name or password",
    toJsonSchema: () => ({ pattern: "^[hH][tT][tT][pP][sS]?:" })
  })
)

const WebhookView = Schema.Struct({
  url: Schema.String,
  createdAt: Schema.DateTimeUtcFromString,
  /** When the secret before the last rotation stops signing; `null` if it no longer signs. */
  formerSecretUntil: Schema.NullOr(Schema.DateTimeUtcFromString)
})

const SecuredWebhook = Schema.Struct({
  ...WebhookView.fields,
  /** A new secret, which cannot be retrieved later; `null` if the webhook keeps its secret. */
  secret: Schema.NullOr(Schema.String)
})

export const DeliveryView = Schema.Struct({
  /** The header `webhook-id` of every attempt. */
  id: Schema.String,
  type: Schema.String,
  /** The id of the response, task or batch; for an event about a budget, the id of the team. */
  subject: Schema.String,
  at: Schema.DateTimeUtcFromString,
  status: Schema.Literals(["pending", "delivered", "failed"]),
  attempts: Schema.Int,
  /** The receiver's status at the last attempt, or why there was none. */
  outcome: Schema.NullOr(Schema.String),
  /** `null` if there will be none. */
  nextAttemptAt: Schema.NullOr(Schema.DateTimeUtcFromString)
})
export type DeliveryView = typeof DeliveryView.Type

const delivery = Schema.String.check(Schema.isPattern(/^[\w-]{1,128}$/))

/** The endpoints for the webhook of a key or team. `unknown` is the error for unknown ids; `subject` says what the id names. */
const endpoints = <const Path extends `/${string}`, Id extends Schema.Codec<string, string>>(
  path: Path,
  id: Id,
  unknown: typeof KeyUnknown | typeof TeamUnknown,
  subject: string
) => {
  const byId = { params: { id } }
  const error = [unknown, WebhookUnknown, NotFound, Unavailable] as const
  return [
    HttpApiEndpoint.get("get", path, { ...byId, success: WebhookView, error })
      .annotate(OpenApi.Summary, `Get the webhook of ${subject}, without its secret`),
    HttpApiEndpoint.put("set", path, {
      ...byId,
      payload: Schema.Struct({ url: WebhookUrl }),
      success: SecuredWebhook,
      error: [unknown, NotFound, Unavailable]
    }).annotate(OpenApi.Summary, "Set the URL. Only the first response contains the secret that signs the events"),
    HttpApiEndpoint.delete("remove", path, { ...byId, error })
      .annotate(OpenApi.Summary, "Remove the webhook with its secret"),
    HttpApiEndpoint.post("rotate", `${path}/rotate`, { ...byId, success: SecuredWebhook, error })
      .annotate(OpenApi.Summary, "Create a new secret. The previous one also signs for a day"),
    HttpApiEndpoint.get("deliveries", `${path}/deliveries`, {
      ...byId,
      success: Schema.Array(DeliveryView),
      error: [unknown, NotFound, Unavailable]
    }).annotate(OpenApi.Summary, "List the 100 events of the last two days whose deliveries changed last"),
    HttpApiEndpoint.post("resend", `${path}/deliveries/:delivery/resend`, {
      params: { id, delivery },
      success: DeliveryView,
      error
    }).annotate(OpenApi.Summary, "Send an event again, for another day")
  ] as const
}

const keyId = KeyId.check(Schema.isMaxLength(maxIdLength))

/** Webhooks for events about the tasks of a key. */
export class WebhooksApi extends HttpApiGroup.make("webhooks")
  .add(...endpoints("/api/keys/:id/webhook", keyId, KeyUnknown, "a key and its replacements"))
  .middleware(Admin)
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
{}

/** Webhooks for events about the budget of a team. */
export class TeamWebhooksApi extends HttpApiGroup.make("teamWebhooks")
  .add(...endpoints("/api/teams/:id/webhook", TeamId, TeamUnknown, "a team, for events about its budget"))
  .middleware(Admin)
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
{}
