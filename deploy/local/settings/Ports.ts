/** Checks and finds free ports on this machine's loopback address. */
import { Effect, Schedule } from "effect"
import { type AddressInfo, createServer } from "node:net"
import { StartFailed } from "./Settings.ts"

/** Listens briefly and returns the port. 0 lets the system choose a free one. `variable` sets the port. */
const tryPort = (port: number, variable: string) =>
  Effect.callback<number, StartFailed>((resume) => {
    const server = createServer()
    server.once("error", ({ code }: NodeJS.ErrnoException) => {
      const why = code === "EADDRINUSE" ? "is already in use" : `cannot be used (${code ?? "unknown"})`
      resume(new StartFailed({ detail: `Port ${port} of 127.0.0.1 ${why}: set ${variable} to another one` }))
    })
    server.listen({ port, host: "127.0.0.1" }, () => {
      const address = server.address() as AddressInfo
      server.close(() => resume(Effect.succeed(address.port)))
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
