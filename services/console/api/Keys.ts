/** `/api/keys`: the API keys, and who changed them. A key's secret is in the answer to its creation, and nowhere else. */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { KeyChange } from "../../../shared/keys/KeyChange.ts"
import { KeyChanges, KeySettings } from "../../../shared/keys/KeySettings.ts"
import { KeyId } from "../../../shared/usage/UsageEvent.ts"
import { Admin } from "./Admin.ts"
import { maxIdLength, NotFound, saying, Unavailable } from "./Errors.ts"

export class KeyUnknown extends Schema.TaggedError<KeyUnknown>()("KeyUnknown", {
  ...saying("There is no such key, or not any more"),
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
  /** The last day (UTC) on which it was used, of the last three months. */
  lastUsedOn: Schema.NullOr(Schema.String),
  /** Since the beginning of the month (UTC). */
  requestsThisMonth: Schema.Finite,
  spentThisMonthUsd: Schema.Finite
})
export type KeyView = typeof KeyView.Type

const NewKey = Schema.Struct({
  key: KeyRecord,
  /** The key itself. It is not stored and cannot be asked for again. */
  secret: Schema.String
})

const byId = { params: { id: KeyId.check(Schema.isMaxLength(maxIdLength)) } }

export class KeysApi extends HttpApiGroup.make("keys")
  .add(
    HttpApiEndpoint.get("list", "/api/keys", { success: Schema.Array(KeyView), error: Unavailable })
      .annotate(OpenApi.Summary, "All keys, without their secrets, and how much they are used")
  )
  .add(
    HttpApiEndpoint.post("create", "/api/keys", {
      payload: KeySettings,
      success: NewKey.pipe(HttpApiSchema.status(201)),
      error: Unavailable
    }).annotate(OpenApi.Summary, "Make a key: the only answer that holds its secret")
  )
  .add(
    HttpApiEndpoint.patch("edit", "/api/keys/:id", {
      ...byId,
      payload: KeyChanges,
      success: KeyRecord,
      error: [KeyUnknown, NotFound, Unavailable]
    }).annotate(OpenApi.Summary, "Change some settings of a key, at once for every process")
  )
  .add(
    HttpApiEndpoint.delete("revoke", "/api/keys/:id", { ...byId, error: [KeyUnknown, NotFound, Unavailable] })
      .annotate(OpenApi.Summary, "End a key for good")
  )
  .add(
    HttpApiEndpoint.get("changes", "/api/key-changes", { success: Schema.Array(KeyChange), error: Unavailable })
      .annotate(OpenApi.Summary, "The latest changes of keys: who, what and when")
  )
  .middleware(Admin)
  // a limit that is misspelt would be a key without one
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
{}
