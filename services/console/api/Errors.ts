/** Errors of the admin API with their HTTP statuses. */
import { Effect, Schema } from "effect"

/** Maximum length of an id in a path. The router accepts longer ones, so that the schema rejects them with a clear error. */
export const maxIdLength = 128

/** A `message` field with the same text in every error of a class. */
export const withMessage = (text: string) => ({
  message: Schema.String.pipe(Schema.withConstructorDefault(Effect.succeed(text)))
})

export class NotSignedIn extends Schema.TaggedError<NotSignedIn>()(
  "NotSignedIn",
  withMessage(
    "Not signed in, or with a wrong token. Sign in first, or send the admin token as 'Authorization: Bearer <token>'"
  ),
  { httpApiStatus: 401 }
) {}

export class NotAllowed extends Schema.TaggedError<NotAllowed>()(
  "NotAllowed",
  withMessage("Your role does not allow this. Ask an administrator"),
  { httpApiStatus: 403 }
) {}

export class TokenWrong extends Schema.TaggedError<TokenWrong>()(
  "TokenWrong",
  withMessage("Invalid admin token. It is the value of CONSOLE_ADMIN_TOKEN"),
  { httpApiStatus: 401 }
) {}

/** The token is invalid, and too many invalid ones came before it. A valid token never fails with this error. */
export class TooManyAttempts extends Schema.TaggedError<TooManyAttempts>()("TooManyAttempts", {
  ...withMessage("Invalid admin token, after too many invalid ones. A valid token is accepted at any time"),
  retryAfterMs: Schema.Finite
}, { httpApiStatus: 429 }) {}

/** No route has this path. Ids that are empty or contain a slash match no route either. */
export class NotFound extends Schema.TaggedError<NotFound>()(
  "NotFound",
  withMessage("Not found. The paths of the admin API are listed at /api/openapi.json"),
  { httpApiStatus: 404 }
) {}

/** A field is well-formed but does not fit the stored data, such as a team that does not exist. */
export class FieldRefused extends Schema.TaggedError<FieldRefused>()(
  "FieldRefused",
  { field: Schema.String, message: Schema.String },
  { httpApiStatus: 400 }
) {}

/** NATS, which stores the console's data, does not answer. */
export class Unavailable extends Schema.TaggedError<Unavailable>()(
  "Unavailable",
  withMessage("NATS, which stores the console's data, does not answer. Try again"),
  { httpApiStatus: 503 }
) {}
