/** `/api/keys/{id}/webhook`: where a key's owner is told about its tasks, and what was delivered there. */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { KeyId } from "../../../shared/usage/UsageEvent.ts"
import { Admin } from "./Admin.ts"
import { maxIdLength, NotFound, Unavailable, withMessage } from "./Errors.ts"
import { KeyUnknown } from "./Keys.ts"

export class WebhookUnknown extends Schema.TaggedError<WebhookUnknown>()("WebhookUnknown", {
  ...withMessage("There is no webhook, or the delivery is unknown or has expired")
}, { httpApiStatus: 404 }) {}

const isUrl = (text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === ""
}

export const WebhookUrl = Schema.String.check(
  Schema.isMaxLength(2_048),
  Schema.makeFilter(isUrl, {
    expected: "an http(s) URL without a user name or password",
    toJsonSchema: () => ({ pattern: "^[hH][tT][tT][pP][sS]?:" })
  })
)

export const WebhookView = Schema.Struct({
  url: Schema.String,
  createdAt: Schema.DateTimeUtcFromString,
  /** Until when the secret before the last rotation signs, too; `null` if it does not. */
  formerSecretUntil: Schema.NullOr(Schema.DateTimeUtcFromString)
})

export const SecuredWebhook = Schema.Struct({
  ...WebhookView.fields,
  /** A new secret, which cannot be retrieved later; `null` if the webhook keeps its secret. */
  secret: Schema.NullOr(Schema.String)
})

export const DeliveryView = Schema.Struct({
  /** The header `webhook-id` of every attempt. */
  id: Schema.String,
  type: Schema.String,
  /** The id of the response or task. */
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

const id = KeyId.check(Schema.isMaxLength(maxIdLength))
const byId = { params: { id } }
const error = [KeyUnknown, WebhookUnknown, NotFound, Unavailable] as const

const path = "/api/keys/:id/webhook"

export class WebhooksApi extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.get("get", path, { ...byId, success: WebhookView, error })
      .annotate(OpenApi.Summary, "Get the webhook of a key and its replacements, without its secret"),
    HttpApiEndpoint.put("set", path, {
      ...byId,
      payload: Schema.Struct({ url: WebhookUrl }),
      success: SecuredWebhook,
      error: [KeyUnknown, NotFound, Unavailable]
    }).annotate(OpenApi.Summary, "Set the URL. Only the first response contains the secret that signs the events"),
    HttpApiEndpoint.delete("remove", path, { ...byId, error })
      .annotate(OpenApi.Summary, "Remove the webhook with its secret"),
    HttpApiEndpoint.post("rotate", `${path}/rotate`, { ...byId, success: SecuredWebhook, error })
      .annotate(OpenApi.Summary, "Make a new secret. For a day the former one signs, too"),
    HttpApiEndpoint.get("deliveries", `${path}/deliveries`, {
      ...byId,
      success: Schema.Array(DeliveryView),
      error: [KeyUnknown, NotFound, Unavailable]
    }).annotate(OpenApi.Summary, "List the latest 100 events of the last two days and their deliveries"),
    HttpApiEndpoint.post("resend", `${path}/deliveries/:delivery/resend`, {
      params: { id, delivery: Schema.String.check(Schema.isPattern(/^[\w-]{1,128}$/)) },
      success: DeliveryView,
      error
    }).annotate(OpenApi.Summary, "Send an event again, for another day")
  )
  .middleware(Admin)
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
{}
