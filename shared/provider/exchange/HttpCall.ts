/**
 * Calls to a provider over HTTP, for all such protocols: relays a client that speaks the provider's dialect, and translates
 * for any other chat client.
 */
import { Effect } from "effect"
import { InvalidRequest } from "../../contract/JobError.ts"
import { chatCompletions } from "../dialects/openai/ChatCompletions.ts"
import { completions } from "../dialects/openai/Completions.ts"
import { generateContent, streamGenerateContent } from "../dialects/gemini/GenerateContent.ts"
import { messages } from "../dialects/anthropic/Messages.ts"
import { notSupported, type Perform } from "../call/Protocol.ts"
import { exchange, type GuardedTools } from "./Exchange.ts"
import type { HttpProtocol } from "./HttpProtocol.ts"
import { PassingAnswer } from "./PassingAnswer.ts"
import { translate } from "./Translation.ts"

export const make = <Options>(protocol: HttpProtocol<Options>, tools: GuardedTools): Perform => {
  const translations = new Map<string, Perform>([
    translate(chatCompletions, protocol, tools),
    translate(completions, protocol, tools),
    translate(messages, protocol, tools),
    translate(generateContent, protocol, tools),
    translate(streamGenerateContent, protocol, tools)
  ])
  const { authorize } = protocol
  const { secrets, upstream } = tools
  return (call, sink) => {
    const request = protocol.relay(call)
    if (request === undefined) return translations.get(call.operation.name)?.(call, sink) ?? notSupported(call)
    if (request instanceof InvalidRequest) return Effect.fail(request)
    const { grammar = protocol.grammar, rewrite, showUsage, usage } = request
    const reader = (hidden: ReadonlyArray<string>) =>
      new PassingAnswer({ call, grammar, showUsage, usage, rewrite, secrets: hidden })
    return exchange({ upstream, secrets, authorize, call, sink, request, reader })
  }
}
