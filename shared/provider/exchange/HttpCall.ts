/**
 * Calls to a provider over HTTP, for all such protocols: relays a client that speaks the provider's dialect, and translates
 * for any other chat client.
 */
import { Effect } from "effect"
import { InvalidRequest } from "../../contract/JobError.ts"
import * as ClientDialects from "../dialects/ClientDialects.ts"
import { notSupported, type Perform } from "../call/Protocol.ts"
import { exchange, type GuardedTools } from "./Exchange.ts"
import type { HttpProtocol } from "./HttpProtocol.ts"
import { PassingAnswer } from "./PassingAnswer.ts"
import { translate } from "./Translation.ts"

/** The names of the operations that a protocol serves: relayed, or translated for chat clients of other dialects. */
export const operationsOf = ({ relays }: Pick<HttpProtocol<never>, "relays">): ReadonlyArray<string> => [
  ...relays.keys(),
  ...ClientDialects.operations
]

export const make = <Options>(protocol: HttpProtocol<Options>, tools: GuardedTools): Perform => {
  const translations = new Map(ClientDialects.map((dialect) => translate(dialect, protocol, tools)))
  const { authorize } = protocol
  const { secrets, upstream } = tools
  return (call, sink) => {
    const relay = protocol.relays.get(call.operation.name)
    if (relay === undefined) return translations.get(call.operation.name)?.(call, sink) ?? notSupported(call)
    const request = relay(call)
    if (request instanceof InvalidRequest) return Effect.fail(request)
    const { grammar = protocol.grammar, rewrite, showUsage, usage } = request
    const reader = (hidden: ReadonlyArray<string>) =>
      new PassingAnswer({ call, grammar, showUsage, usage, rewrite, secrets: hidden })
    return exchange({ upstream, secrets, authorize, call, sink, request, reader })
  }
}
