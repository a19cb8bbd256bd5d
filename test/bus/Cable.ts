/** A wire between a process and its server that a test can cut, hold still and mend. */
import { Effect, type Scope } from "effect"
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"

type State = "whole" | "cut" | "held"

export class Cable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #state: State = "whole"

  /** One to the server at `url`, removed with its scope. */
  static readonly make = (url: string): Effect.Effect<Cable, never, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.promise(async () => {
        const cable = new Cable(Number(new URL(url).port))
        await once(cable.#server.listen(0, "127.0.0.1"), "listening")
        return cable
      }),
      (cable) =>
        Effect.sync(() => {
          cable.cut()
          cable.#server.close()
        })
    )

  private constructor(port: number) {
    this.#server = createServer({ noDelay: true }, (near) => {
      if (this.#state === "cut") return near.destroy()
      const far = connect({ port, host: "127.0.0.1", noDelay: true })
      this.#join(near, far)
      this.#join(far, near)
    })
  }

  get url(): string {
    return `nats://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Ends every connection, as the death of either side would, and lets no new one come about. */
  cut(): void {
    this.#state = "cut"
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Passes nothing on, while every connection stands: so a frozen process looks from the other side. */
  hold(): void {
    this.#state = "held"
    for (const socket of this.#sockets) socket.pause()
  }

  /** Lets everything pass again, what was held first. */
  mend(): void {
    this.#state = "whole"
    for (const socket of this.#sockets) socket.resume()
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from)
    from.on("data", (bytes) => to.write(bytes))
    from.on("error", () => undefined)
    from.on("close", () => {
      this.#sockets.delete(from)
      to.destroy()
    })
    if (this.#state === "held") from.pause()
  }
}
