/** Lets a server that listens already refuse requests until the service can handle them: NATS, or something in it, is missing. */
import type { RequestListener, Server } from "node:http"

/** Asks clients to come back on another connection: load balancers then choose another server. */
export const retryHeaders = { connection: "close", "retry-after": "1" }

/** Answers requests by `refuse` until the service's own handler is added. */
export const refuseWhileStarting = <S extends Server>(server: S, refuse: RequestListener): S => {
  const giveWay = (event: string | symbol) => {
    if (event === "request") server.off("request", refuse).off("newListener", giveWay)
  }
  return server.on("request", refuse).on("newListener", giveWay)
}
