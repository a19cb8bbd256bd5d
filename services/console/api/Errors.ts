/** What the admin API can refuse, with the status of each. */
import { Effect, Schema } from "effect"

/** The longest id in a path. The router takes much longer ones, so that they are refused by name. */
export const maxIdLength = 128

/** The message of an error, which is the same for every one of its kind. */
export const saying = (text: string) => ({
  message: Schema.String.pipe(Schema.withConstructorDefault(Effect.succeed(text)))
})

export class NotSignedIn extends Schema.TaggedError<NotSignedIn>()(
  "NotSignedIn",
  saying("Sign in first, or send the admin token as 'Authorization: Bearer <token>'"),
  { httpApiStatus: 401 }
) {}

export class TokenWrong extends Schema.TaggedError<TokenWrong>()(
  "TokenWrong",
  saying("This is not the admin token: it is what CONSOLE_ADMIN_TOKEN holds"),
  { httpApiStatus: 401 }
) {}

/** One more wrong token after too many. The right one is never answered with this. */
export class TooManyAttempts extends Schema.TaggedError<TooManyAttempts>()("TooManyAttempts", {
  ...saying("This is not the admin token, and too many wrong ones were sent: the right one is accepted at any time"),
  retryAfterMs: Schema.Finite
}, { httpApiStatus: 429 }) {}

/** No route has this path. An id that is empty or holds a slash leads nowhere, too. */
export class NotFound extends Schema.TaggedError<NotFound>()(
  "NotFound",
  saying("There is nothing here"),
  { httpApiStatus: 404 }
) {}

/** What the console shows lies in NATS, which does not answer. */
export class Unavailable extends Schema.TaggedError<Unavailable>()(
  "Unavailable",
  saying("NATS, where the console reads and writes, does not answer just now: try again"),
  { httpApiStatus: 503 }
) {}
