/** Checks and finds free ports on this machine's loopback address. */
import { Effect, Schedule, Schema } from "effect"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"

/** `variable` sets the port; `code` is the system's error, such as `EADDRINUSE`. */
export class PortUnavailable extends Schema.TaggedError<PortUnavailable>()("PortUnavailable", {
  port: Schema.Int,
  variable: Schema.String,
  code: Schema.String
}) {
  override get message() {
    const reason = this.code === "EADDRINUSE" ? "is already in use" : `cannot be used (${this.code})`
    return `Port ${this.port} of 127.0.0.1 ${reason}: set ${this.variable} to another one`
  }
}

/** Listens briefly and returns the port. 0 lets the system choose a free one. */
const tryPort = (port: number, variable: string) =>
  Effect.callback<number, PortUnavailable>((resume) => {
    const server = createServer()
    server.once("error", (error: NodeJS.ErrnoException) =>
      resume(Effect.fail(new PortUnavailable({ port, variable, code: error.code ?? "unknown" }))))
    server.listen({ port, host: "127.0.0.1" }, () => {
      const address = server.address() as AddressInfo
      server.close(() =>
        resume(Effect.succeed(address.port))
      )
    })
  })

/** How long to wait for stopping processes to release a port. */
const untilReleased = Schedule.spaced("200 millis").pipe(Schedule.upTo({ duration: "15 seconds" }))

/**
 * Fails unless the port is free. Waits after a start that was killed (`abandoned`), whose services may still be finishing their
 * requests.
 */
export const requirePort = (port: number, variable: string, abandoned: boolean) =>
  abandoned ? Effect.retry(tryPort(port, variable), untilReleased) : tryPort(port, variable)

/** Returns a free port, preferably this one. */
export const freePort = (preferred = 0) => tryPort(preferred, "").pipe(Effect.catch(() => tryPort(0, "")), Effect.orDie)
