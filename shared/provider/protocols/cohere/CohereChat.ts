/** Cohere's chat API, which serves clients of other dialects. */
import type { CohereOptions } from "../../dialects/cohere/CohereOptions.ts"
import { cohereProvider } from "../../dialects/cohere/CohereProvider.ts"
import { type AnswerGrammar, membersNamed } from "../../exchange/AnswerGrammar.ts"
import { bearer } from "../../exchange/Exchange.ts"
import type { HttpProtocol } from "../../exchange/HttpProtocol.ts"
import * as Json from "../../json/Json.ts"

const contentOf: AnswerGrammar["contentOf"] = ({ delta, type }) => {
  switch (type) {
    case "message-start":
    case "content-end":
      return undefined
    case "content-start":
    case "content-delta": {
      const { text = "", thinking = "" } = Json.fields(Json.fields(Json.fields(delta)["message"])["content"])
      return text !== "" ? "text" : thinking === "" ? undefined : "other"
    }
    case "message-end":
      return Json.fields(delta)["finish_reason"] === "TOOL_CALL" ? "other" : "text"
    default:
      return "other"
  }
}

export const cohereChat: HttpProtocol<CohereOptions> = {
  authorize: bearer,
  relays: new Map(),
  grammar: {
    done: "dropped",
    marks: membersNamed(),
    modelPaths: [],
    read: () => ({}),
    isLast: ({ type }) => type === "message-end",
    contentOf,
    damagedText: /^(?!.*"thinking").*"content-delta"/s
  },
  chat: { dialect: cohereProvider, path: () => "/v2/chat" }
}
