/**
 * `/api/keys`, `/api/principals` and `/api/key-changes`: API keys, owners of tokens, and the audit log of keys and teams. Only the response to a
 * key's creation contains its secret.
 */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { KeyChange } from "../../../shared/keys/KeyChange.ts"
import { KeyChanges, KeySettings, NewKeySettings } from "../../../shared/keys/KeySettings.ts"
import { PrincipalRecord } from "../../../shared/keys/PrincipalRecord.ts"
import { KeyId } from "../../../shared/usage/UsageEvent.ts"
import { Admin } from "./Admin.ts"
import { FieldRefused, maxIdLength, NotFound, Unavailable, withMessage } from "./Errors.ts"

export class KeyUnknown extends Schema.TaggedError<KeyUnknown>()("KeyUnknown", {
  ...withMessage("Key not found: it does not exist or was revoked"),
  id: Schema.String
}, { httpApiStatus: 404 }) {}

const KeyRecord = Schema.Struct({
  id: Schema.String,
  createdAt: Schema.DateTimeUtcFromString,
  editedAt: Schema.NullOr(Schema.DateTimeUtcFromString),
  ...KeySettings.fields
})

export const KeyView = Schema.Struct({
  ...KeyRecord.fields,
  /** The last day (UTC) with a request; `null` if there was none in the last 90 days. */
  lastUsedOn: Schema.NullOr(Schema.String),
  /** Since the start of the calendar month (UTC). */
  requestsThisMonth: Schema.Finite,
  spentThisMonthUsd: Schema.Finite
})
export type KeyView = typeof KeyView.Type

const PrincipalView = Schema.Struct({
  /** Takes the place of a key's id in usage, requests and tasks. */
  id: Schema.String,
  ...PrincipalRecord.fields
})

const NewKey = Schema.Struct({
  key: KeyRecord,
  /** The secret. It is not stored, so it cannot be retrieved later. */
  secret: Schema.String
})

const byId = { params: { id: KeyId.check(Schema.isMaxLength(maxIdLength)) } }

export class KeysApi extends HttpApiGroup.make("keys")
  .add(
    HttpApiEndpoint.get("list", "/api/keys", { success: Schema.Array(KeyView), error: Unavailable })
      .annotate(OpenApi.Summary, "List keys and their usage, without secrets"),
    HttpApiEndpoint.post("create", "/api/keys", {
      payload: NewKeySettings,
      success: NewKey.pipe(HttpApiSchema.status(201)),
      error: [FieldRefused, Unavailable]
    }).annotate(OpenApi.Summary, "Create a key. Only this response contains its secret"),
    HttpApiEndpoint.patch("edit", "/api/keys/:id", {
      ...byId,
      payload: KeyChanges,
      success: KeyRecord,
      error: [KeyUnknown, FieldRefused, NotFound, Unavailable]
    }).annotate(
      OpenApi.Summary,
      "Change settings of a key. Every process applies the change within a second. `team` moves the key"
    ),
    HttpApiEndpoint.delete("revoke", "/api/keys/:id", { ...byId, error: [KeyUnknown, NotFound, Unavailable] })
      .annotate(OpenApi.Summary, "Revoke a key permanently"),
    HttpApiEndpoint.get("principals", "/api/principals", { success: Schema.Array(PrincipalView), error: Unavailable })
      .annotate(
        OpenApi.Summary,
        "List owners of tokens that were used in place of keys: issuer and value of the claim, at most 5,000, newest first"
      ),
    HttpApiEndpoint.get("changes", "/api/key-changes", { success: Schema.Array(KeyChange), error: Unavailable })
      .annotate(OpenApi.Summary, "List the latest changes to keys and teams: who, what and when")
  )
  .middleware(Admin)
  // rejects unknown fields: a misspelt limit must not create a key without that limit
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
{}
