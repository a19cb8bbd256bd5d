/**
 * What a service says that listens already and cannot serve yet, because NATS or something in it is not there: that it
 * lives, to whoever would else start it again, and to everybody else to come back later.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"

const answer = ({ url }: IncomingMessage, response: ServerResponse): void => {
  const isAlive = url === "/healthz"
  response.writeHead(isAlive ? 200 : 503, {
    "content-type": "text/plain",
    connection: "close",
    ...!isAlive && { "retry-after": "1" }
  })
  response.end(isAlive ? "ok\n" : "starting\n")
}

/** Answers until somebody else does. */
export const answerWhileStarting = <S extends Server>(server: S): S => {
  const giveWay = (event: string | symbol) => {
    if (event === "request") server.off("request", answer).off("newListener", giveWay)
  }
  return server.on("request", answer).on("newListener", giveWay)
}
