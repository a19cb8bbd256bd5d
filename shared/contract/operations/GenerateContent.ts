/** POST /v1beta/models/{model}:generateContent and its streamed form: text or pictures in the Gemini format. */
import { Schema } from "effect"
import { AnsweringModel, atLeast, between, constant, field, JsonObject, optional, Seed, tokens } from "../Fields.ts"
import { eventsOf, type Operation } from "../Operation.ts"
import { contentsOutline } from "../outlines/Outlines.ts"
import { sessionHeaders, translationHeader } from "../ChatHeaders.ts"

const functionFields = {
  id: optional(Schema.String, "Connects a call and its response, if a function is called several times."),
  name: field(Schema.NonEmptyString, "One of the names in `functionDeclarations`.")
}

/** A part has one of these fields. Only the provider interprets others. */
export const Part = Schema.Struct({
  text: optional(Schema.String, "A text."),
  inlineData: optional(
    Schema.Struct({
      mimeType: field(Schema.NonEmptyString, "Media type of the file, such as `image/png`."),
      data: field(Schema.NonEmptyString, "Base64.")
    }),
    "A file in the request, such as an image."
  ),
  fileData: optional(
    Schema.Struct({
      mimeType: optional(Schema.String, "Media type of the file, such as `application/pdf`."),
      fileUri: field(Schema.NonEmptyString, "An http(s) URL, or the URI of a file uploaded to the provider.")
    }),
    "A file by its URL."
  ),
  functionCall: optional(
    Schema.Struct({ ...functionFields, args: optional(JsonObject, "Arguments by name.") }),
    "A function that the model called."
  ),
  functionResponse: optional(
    Schema.Struct({ ...functionFields, response: optional(JsonObject, "What the function returned.") }),
    "A function's result."
  ),
  thought: optional(Schema.Boolean, "Whether `text` is the model's reasoning.", false),
  thoughtSignature: optional(Schema.String, "The provider's signature of the reasoning: send it back unchanged.")
})
export type Part = typeof Part.Type

const Content = Schema.Struct({
  role: optional(Schema.Literals(["user", "model", "function", "system"]), "Author.", "user"),
  parts: field(Schema.Array(Part).check(Schema.isMinLength(1)), "Texts, files, function calls and their results.")
})

const FunctionDeclaration = Schema.Struct({
  name: field(Schema.NonEmptyString, "The model's calls name the function by it."),
  description: optional(Schema.String, "Tells the model when and how to call the function."),
  parameters: optional(JsonObject, "Schema of the arguments, in Gemini's subset of OpenAPI."),
  parametersJsonSchema: field(
    Schema.optionalKey(Schema.Unknown),
    "JSON Schema of the arguments, instead of `parameters`."
  )
})

/** The longer side of a picture: 512, 1,024, 2,048 and 4,096 pixels. */
export const imageSizes = ["512", "1K", "2K", "4K"] as const

const GenerationConfig = Schema.Struct({
  temperature: optional(between(0, 2), "Randomness: at 0 the model always picks the most likely token."),
  topP: optional(Schema.Finite, "Sample only from the most likely tokens whose probabilities add up to this."),
  topK: optional(Schema.Finite, "Sample only from this many of the most likely tokens."),
  candidateCount: optional(atLeast(1), "Number of answers.", 1),
  maxOutputTokens: optional(atLeast(1), "Maximum number of tokens in the response."),
  stopSequences: optional(Schema.Array(Schema.String), "The answer ends before any of these."),
  seed: optional(Seed, "The same seed and request give the same answer, if the model supports it."),
  presencePenalty: optional(Schema.Finite, "Above 0: makes tokens that have already occurred less likely."),
  frequencyPenalty: optional(Schema.Finite, "Above 0: makes tokens less likely the more often they have occurred."),
  thinkingConfig: optional(
    Schema.Struct({
      includeThoughts: optional(Schema.Boolean, "Return the reasoning, in parts with `thought`.", false),
      thinkingBudget: optional(Schema.Int, "In tokens. 0 disables thinking; with -1 the model decides."),
      thinkingLevel: optional(Schema.String, "How much the model thinks, such as `low` or `high`.")
    }),
    "How much a reasoning model thinks."
  ),
  responseMimeType: optional(Schema.String, "`application/json` for an answer in JSON.", "text/plain"),
  responseSchema: optional(JsonObject, "Schema of an answer in JSON, in Gemini's subset of OpenAPI."),
  responseJsonSchema: field(
    Schema.optionalKey(Schema.Unknown),
    "JSON Schema of an answer in JSON, instead of `responseSchema`."
  ),
  responseModalities: optional(Schema.Array(Schema.Literals(["TEXT", "IMAGE", "AUDIO"])), "Kinds of output."),
  imageConfig: optional(
    Schema.Struct({
      aspectRatio: optional(
        Schema.String.check(Schema.isPattern(/^[1-9]\d?:[1-9]\d?$/u, { expected: "an aspect ratio such as 16:9" })),
        "Width to height: `<w>:<h>`, whole numbers from 1 to 99."
      ),
      imageSize: optional(
        Schema.Literals(imageSizes),
        "The longer side of an image: 512, 1,024, 2,048 or 4,096 pixels."
      )
    }),
    "Shape and size of images."
  )
})

export const GenerateContentRequest = Schema.Struct({
  model: optional(Schema.String, "Ignored: the path names the model."),
  contents: Schema.Array(Content).check(Schema.isMinLength(1)).annotateKey({ description: "The conversation." }),
  systemInstruction: optional(
    Schema.Struct({ parts: field(Schema.Array(Part), "Texts.") }),
    "Instructions for the whole conversation."
  ),
  tools: optional(
    Schema.Array(Schema.Struct({
      functionDeclarations: optional(Schema.Array(FunctionDeclaration), "Functions of the client.")
    })),
    "Tools that the model may use."
  ),
  toolConfig: optional(
    Schema.Struct({
      functionCallingConfig: optional(
        Schema.Struct({
          mode: optional(
            Schema.Literals(["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"]),
            "Whether the model decides (`AUTO`), must (`ANY`) or must not (`NONE`) call a function; with `VALIDATED` " +
              "it decides, and its calls follow the schemas.",
            "AUTO"
          ),
          allowedFunctionNames: optional(Schema.Array(Schema.String), "With `ANY`, the functions to choose from.")
        }),
        "Whether to call a function, or which ones."
      )
    }),
    "Use of the tools."
  ),
  safetySettings: optional(Schema.Array(JsonObject), "Categories that the provider should block."),
  generationConfig: optional(GenerationConfig, "Settings of the answer.")
})
export type GenerateContentRequest = typeof GenerateContentRequest.Type

const ModalityTokens = field(
  Schema.optionalKey(
    Schema.Array(Schema.Struct({
      modality: field(Schema.String, "Kind of content, such as `TEXT`, `IMAGE` or `AUDIO`."),
      tokenCount: tokens("Tokens of that kind.")
    }))
  ),
  "Tokens by kind of content, as far as they are known."
)

export const GenerateContentAnswer = Schema.Struct({
  candidates: field(
    Schema.Array(Schema.Struct({
      content: field(
        Schema.Struct({
          role: constant("model", "Always the model."),
          parts: field(Schema.Array(JsonObject), "Texts, images and function calls, as in requests.")
        }),
        "Can be appended to the request's `contents`."
      ),
      finishReason: field(
        Schema.optionalKey(Schema.String),
        "Why the answer ended, such as `STOP`, `MAX_TOKENS` or `SAFETY`; only in its last event if streamed."
      ),
      index: field(Schema.Int, "0 to `candidateCount` - 1."),
      groundingMetadata: field(
        Schema.optionalKey(JsonObject),
        "Sources of the text, if the provider names any; only in its last event if streamed."
      ),
      safetyRatings: field(Schema.Array(JsonObject), "The provider's ratings of the answer; empty if it gives none.")
    })),
    "The `candidateCount` answers."
  ),
  usageMetadata: field(
    Schema.optionalKey(Schema.Struct({
      promptTokenCount: tokens("Tokens of the request."),
      candidatesTokenCount: tokens("Tokens of the answers, without reasoning."),
      totalTokenCount: tokens("Tokens of request, reasoning and answers together."),
      cachedContentTokenCount: Schema.optionalKey(tokens("Tokens that the provider read from its cache.")),
      thoughtsTokenCount: Schema.optionalKey(tokens("Tokens of reasoning.")),
      promptTokensDetails: ModalityTokens,
      candidatesTokensDetails: ModalityTokens
    })),
    "Tokens that the request consumed."
  ),
  modelVersion: AnsweringModel,
  responseId: field(Schema.String, "Unique per answer.")
})
export type GenerateContentAnswer = typeof GenerateContentAnswer.Type

/** A candidate in the answers of the examples. */
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
  outline: contentsOutline,
  response: GenerateContentAnswer,
  streams: () => false,
  headers: [translationHeader, ...sessionHeaders],
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
