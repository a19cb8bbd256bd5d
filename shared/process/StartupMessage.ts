/** Makes one-line messages for errors that end a program: what is wrong and what to do, without class names or stack traces. */
import { Config, Option, PlatformError, Predicate, Schema } from "effect"
import { HttpServerError } from "effect/http"
import * as SchemaErrors from "../contract/SchemaErrors.ts"

export const startupMessage = (error: unknown): string => {
  if (error instanceof Config.ConfigError) return ofEnvironment(error)
  if (error instanceof HttpServerError.ServeError) return ofListening(error.cause)
  if (error instanceof PlatformError.PlatformError) return ofFile(error)
  return error instanceof Error ? error.message : String(error)
}

/** The message for an invalid environment variable. Omits the value, which may be a secret. */
const ofEnvironment = ({ cause }: Config.ConfigError): string =>
  Schema.isSchemaError(cause)
    ? SchemaErrors.all(cause.issue, undefined).map(({ message, path }) => `${path.join("_")} ${message}`).join("; ")
    : cause.message

const ListenError = Schema.Struct({
  code: Schema.String,
  address: Schema.optionalKey(Schema.String),
  port: Schema.optionalKey(Schema.Int),
  hostname: Schema.optionalKey(Schema.String)
})
type ListenError = typeof ListenError.Type
const decodeListenError = Schema.decodeUnknownOption(ListenError)

/** The message for a port that cannot be opened. Names the variables: `HEALTH_*` of any service, or `PORT` and `HOST`. */
const ofListening = (cause: unknown): string => {
  const { address, code = "", hostname, port } = Option.getOrElse(
    decodeListenError(cause),
    (): Partial<ListenError> => ({})
  )
  const where = `cannot listen at ${hostname ?? address}${port === undefined ? "" : `:${port}`}`
  switch (code) {
    case "EADDRINUSE":
      return `${where}: this port is in use; stop the program that uses it, or set PORT or HEALTH_PORT to another`
    case "EACCES":
      return `${where}: this user may not use this port; set PORT or HEALTH_PORT to one above 1023`
    default:
      return `${where} (${code}): HOST and HEALTH_HOST must be addresses of this machine`
  }
}

const ofFile = ({ message, reason }: PlatformError.PlatformError): string => {
  if (reason._tag === "BadArgument" || reason.pathOrDescriptor === undefined) return message
  switch (reason._tag) {
    case "NotFound":
      return `${reason.pathOrDescriptor}: no such file or folder`
    case "PermissionDenied":
      return `${reason.pathOrDescriptor}: this user may not use it`
    case "AlreadyExists":
      return `${reason.pathOrDescriptor}: it already exists`
    default:
      return `${reason.pathOrDescriptor}: it cannot be used${codeOf(reason.cause)}`
  }
}

/** The system's error code. */
const codeOf = (cause: unknown): string =>
  Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? ` (${cause.code})` : ""
