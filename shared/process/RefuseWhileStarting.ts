/** Rejects requests until the service can handle them, while it waits for NATS or for a stream or bucket. */
import type { RequestListener, Server } from "node:http"

/** A retry on a new connection lets load balancers choose another server. */
export const retryElsewhereHeaders = { connection: "close", "retry-after": "1" }

/** Answers requests with `refuse` until the service adds its own handler. */
export const refuseWhileStarting = <S extends Server>(server: S, refuse: RequestListener): S => {
  const remove = (event: string | symbol) => {
    if (event === "request") server.off("request", refuse).off("newListener", remove)
  }
  return server.on("request", refuse).on("newListener", remove)
}
