/** Passes connections that upgrade to another protocol to their route, which starts after the server. */
import { Context, Effect, Layer, type Scope } from "effect"
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"

export interface UpgradeHandler {
  /** Whether the request may upgrade. If not, it is served like any other. */
  readonly accepts: (request: IncomingMessage) => boolean
  /** `head` holds the bytes that followed the request. */
  readonly take: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

export class Upgrades extends Context.Service<
  Upgrades,
  UpgradeHandler & {
    /** Serves upgrades until the scope closes. */
    readonly serve: (handler: UpgradeHandler) => Effect.Effect<void, never, Scope.Scope>
  }
>()("services/ingress/exchange/Upgrades") {
  static readonly layer = Layer.sync(Upgrades, () => {
    let current: UpgradeHandler | undefined
    return Upgrades.of({
      accepts: (request) => current?.accepts(request) === true,
      take: (request, socket, head) => current === undefined ? socket.destroy() : current.take(request, socket, head),
      serve: (handler) =>
        Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() => {
            current = handler
          }),
          () =>
            Effect.sync(() => {
              current = undefined
            })
        ))
    })
  })
}
