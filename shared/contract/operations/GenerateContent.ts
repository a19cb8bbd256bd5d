/** POST /v1beta/models/{model}:generateContent and its streamed form: text or pictures in the Gemini format. */
import { Schema } from "effect"
import { atLeast, between, JsonObject, optional } from "../Fields.ts"
import { eventsOf, type Operation } from "../Operation.ts"
import { translationHeader } from "../Translation.ts"

const functionFields = { id: optional(Schema.String), name: Schema.NonEmptyString }

/** A part has one of these fields. Only the provider interprets others. */
export const Part = Schema.Struct({
  text: optional(Schema.String),
  inlineData: optional(Schema.Struct({ mimeType: Schema.NonEmptyString, data: Schema.NonEmptyString })),
  fileData: optional(Schema.Struct({ mimeType: optional(Schema.String), fileUri: Schema.NonEmptyString })),
  functionCall: optional(Schema.Struct({ ...functionFields, args: optional(JsonObject) })),
  functionResponse: optional(Schema.Struct({ ...functionFields, response: optional(JsonObject) })),
  thought: optional(Schema.Boolean),
  thoughtSignature: optional(Schema.String)
})
export type Part = typeof Part.Type

const Content = Schema.Struct({
  role: optional(Schema.Literals(["user", "model", "function", "system"])),
  parts: Schema.Array(Part).check(Schema.isMinLength(1))
})

const FunctionDeclaration = Schema.Struct({
  name: Schema.NonEmptyString,
  description: optional(Schema.String),
  parameters: optional(JsonObject),
  parametersJsonSchema: Schema.optionalKey(Schema.Unknown)
})

/** The longer side of a picture: 512, 1,024, 2,048 and 4,096 pixels. */
export const imageSizes = ["512", "1K", "2K", "4K"] as const

const GenerationConfig = Schema.Struct({
  temperature: optional(between(0, 2)),
  topP: optional(Schema.Finite, "Sample only from the most likely tokens whose probabilities add up to this."),
  topK: optional(Schema.Finite, "Sample only from this many of the most likely tokens."),
  candidateCount: optional(atLeast(1), "Number of answers."),
  maxOutputTokens: optional(atLeast(1), "Maximum number of tokens in the response."),
  stopSequences: optional(Schema.Array(Schema.String), "The answer ends before any of these."),
  seed: optional(Schema.Int),
  presencePenalty: optional(Schema.Finite),
  frequencyPenalty: optional(Schema.Finite),
  thinkingConfig: optional(Schema.Struct({
    includeThoughts: optional(Schema.Boolean),
    thinkingBudget: optional(Schema.Int, "In tokens. 0 disables thinking; with -1 the model decides."),
    thinkingLevel: optional(Schema.String)
  })),
  responseMimeType: optional(Schema.String, "`application/json` for an answer in JSON."),
  responseSchema: optional(JsonObject, "The schema of an answer in JSON."),
  responseJsonSchema: Schema.optionalKey(Schema.Unknown),
  responseModalities: optional(Schema.Array(Schema.Literals(["TEXT", "IMAGE", "AUDIO"])), "Kinds of output."),
  imageConfig: optional(Schema.Struct({
    aspectRatio: optional(
      Schema.String.check(Schema.isPattern(/^[1-9]\d?:[1-9]\d?$/u, { expected: "an aspect ratio such as 16:9" })),
      "`<w>:<h>`, whole numbers from 1 to 99."
    ),
    imageSize: optional(Schema.Literals(imageSizes), "The longer side of an image: 512, 1,024, 2,048 or 4,096 pixels.")
  }))
})

export const GenerateContentRequest = Schema.Struct({
  model: optional(Schema.String, "Ignored: the path names the model."),
  contents: Schema.Array(Content).check(Schema.isMinLength(1)).annotateKey({ description: "The conversation." }),
  systemInstruction: optional(Schema.Struct({ parts: Schema.Array(Part) }), "Instructions for the whole conversation."),
  tools: optional(Schema.Array(Schema.Struct({ functionDeclarations: optional(Schema.Array(FunctionDeclaration)) }))),
  toolConfig: optional(Schema.Struct({
    functionCallingConfig: optional(Schema.Struct({
      mode: optional(Schema.Literals(["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"])),
      allowedFunctionNames: optional(Schema.Array(Schema.String))
    }))
  })),
  safetySettings: optional(Schema.Array(JsonObject), "Categories that the provider should block."),
  generationConfig: optional(GenerationConfig)
})
export type GenerateContentRequest = typeof GenerateContentRequest.Type

export const GenerateContentAnswer = Schema.Struct({
  candidates: Schema.Array(Schema.Struct({
    content: Schema.Struct({ role: Schema.Literal("model"), parts: Schema.Array(JsonObject) }),
    finishReason: Schema.optionalKey(Schema.String),
    index: Schema.Int,
    safetyRatings: Schema.Array(JsonObject)
  })),
  usageMetadata: Schema.optionalKey(Schema.Struct({
    promptTokenCount: Schema.Int,
    candidatesTokenCount: Schema.Int,
    totalTokenCount: Schema.Int,
    cachedContentTokenCount: Schema.optionalKey(Schema.Int),
    thoughtsTokenCount: Schema.optionalKey(Schema.Int)
  })),
  modelVersion: Schema.String,
  responseId: Schema.String
})
export type GenerateContentAnswer = typeof GenerateContentAnswer.Type

/** For examples. */
const candidate = (text: string, finishReason?: string) => ({
  content: { role: "model", parts: [{ text }] },
  finishReason,
  index: 0,
  safetyRatings: []
})

export const generateContent = {
  name: "generateContent",
  summary: "Generate text or images from parts",
  paths: ["/v1beta/models/{model}:generateContent", "/v1/models/{model}:generateContent"],
  workloads: ["chat", "images"],
  dialect: "gemini",
  request: GenerateContentRequest,
  response: GenerateContentAnswer,
  streams: () => false,
  headers: [translationHeader],
  description: "The answer is text or images, depending on the model.",
  examples: {
    text: {
      summary: "Text",
      model: "local-chat",
      body: {
        contents: [{ role: "user", parts: [{ text: "Say: The lighthouse was built in 1871." }] }],
        generationConfig: { maxOutputTokens: 100 }
      },
      answer: {
        candidates: [candidate("The lighthouse was built in 1871.", "STOP")],
        usageMetadata: { promptTokenCount: 14, candidatesTokenCount: 9, totalTokenCount: 23 },
        modelVersion: "local-chat",
        responseId: "a2c967d74f0f47a1bb9eec8599794475"
      }
    },
    picture: {
      summary: "An image",
      model: "local-image",
      body: {
        contents: [{ role: "user", parts: [{ text: "A lighthouse at night" }] }],
        generationConfig: {
          responseModalities: ["TEXT", "IMAGE"],
          imageConfig: { aspectRatio: "16:9", imageSize: "512" }
        }
      }
    }
  }
} satisfies Operation

export const streamGenerateContent = {
  ...generateContent,
  name: "streamGenerateContent",
  summary: "Generate text or images from parts, streamed",
  paths: ["/v1beta/models/{model}:streamGenerateContent", "/v1/models/{model}:streamGenerateContent"],
  streams: () => true,
  description:
    "The answer is sent as server-sent events. The parameter `alt=sse`, which official clients send, has no effect.",
  examples: {
    streamed: {
      summary: "Text in events",
      model: "local-chat",
      body: generateContent.examples.text.body,
      answer: eventsOf(
        { candidates: [candidate("The lighthouse")], modelVersion: "local-chat", responseId: "7d22" },
        {
          candidates: [candidate("", "STOP")],
          usageMetadata: { promptTokenCount: 14, candidatesTokenCount: 9, totalTokenCount: 23 },
          modelVersion: "local-chat",
          responseId: "7d22"
        }
      )
    }
  }
} satisfies Operation
