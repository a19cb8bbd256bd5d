/** Ports of this machine's loopback address: is one free, and which one is. */
import { Effect, Schedule, Schema } from "effect"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"

/** A port cannot be listened on. `variable` is what sets it, `code` the system's, as in `EADDRINUSE`. */
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

/** Listens for a moment and returns the port. 0 asks the system for a free one. */
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

/** A process that was told to end may take this long to let go of its port. */
const letGo = Schedule.spaced("200 millis").pipe(Schedule.upTo({ duration: "15 seconds" }))

/**
 * Fails unless the port can be listened on. After a start that was killed (`abandoned`) its services may still be finishing
 * their requests, so the port is given time.
 */
export const requirePort = (port: number, variable: string, abandoned: boolean) =>
  abandoned ? Effect.retry(tryPort(port, variable), letGo) : tryPort(port, variable)

/** A free port: the preferred one if it is. */
export const freePort = (preferred = 0) => tryPort(preferred, "").pipe(Effect.catch(() => tryPort(0, "")), Effect.orDie)
