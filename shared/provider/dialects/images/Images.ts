/** Serves all picture operations with an `ImageModel`: generations, edits and generateContent. */
import { Effect } from "effect"
import { generateContent, streamGenerateContent } from "../../../contract/operations/GenerateContent.ts"
import { imageEdits } from "../../../contract/operations/ImageEdits.ts"
import { imageGenerations } from "../../../contract/operations/ImageGenerations.ts"
import type { JobError } from "../../../contract/JobError.ts"
import type { Usage } from "../../../contract/Usage.ts"
import * as PaidParts from "../../call/PaidParts.ts"
import type { Call, Perform } from "../../call/Protocol.ts"
import { readContent } from "./ContentRequest.ts"
import * as ImageAnswer from "./ImageAnswer.ts"
import type { GeneratedPictures, ImageModel } from "./ImageModel.ts"
import { type ImageRequest, readEdit, readGeneration } from "./ImageRequest.ts"

type Make = (model: ImageModel, dependencies: ImageAnswer.Dependencies) => Perform

const readPicture = (call: Call) => Effect.map(readContent(call), ({ picture }) => picture)

const perform = (read: (call: Call) => Effect.Effect<ImageRequest, JobError>): Make => (model, dependencies) =>
  Effect.fnUntraced(function*(call, sink) {
    const request = yield* read(call)
    const made = yield* model(call, request)
    return yield* written(call, made, ImageAnswer.write(made, call, request, dependencies, sink))
  })

const content: Make = (model, dependencies) =>
  Effect.fnUntraced(function*(call, sink) {
    const { picture, wants } = yield* readContent(call)
    const made = yield* model(call, picture)
    return yield* written(call, made, ImageAnswer.writeContent(made, call, wants, dependencies, sink))
  })

const readers: ReadonlyMap<string, (call: Call) => Effect.Effect<Pick<ImageRequest, "n">, JobError>> = new Map([
  [imageGenerations.name, readGeneration],
  [imageEdits.name, readEdit],
  [generateContent.name, readPicture],
  [streamGenerateContent.name, readPicture]
])

/** The number of pictures that a request of any operation asks for, at least 1. */
export const pictureCount = (call: Call): Effect.Effect<number, JobError> => {
  const read = readers.get(call.operation.name)
  return read === undefined ? Effect.succeed(1) : Effect.map(read(call), ({ n }) => n)
}

const makes: ReadonlyMap<string, Make> = new Map([
  [imageGenerations.name, perform(readGeneration)],
  [imageEdits.name, perform(readEdit)],
  [generateContent.name, content],
  [streamGenerateContent.name, content]
])

/** The names of the operations. */
export const operations = [...makes.keys()]

export interface Abilities {
  /** Takes the client's messages as they are, instead of their prompt. */
  readonly takesMessages?: boolean
}

/** By the operation's name. */
export const performs = (
  model: ImageModel,
  dependencies: ImageAnswer.Dependencies,
  { takesMessages = false }: Abilities = {}
): ReadonlyMap<string, Perform> => {
  const warning: ImageModel = (call, request) =>
    Effect.map(model(call, request), ({ warnings = [], ...made }) => ({
      ...made,
      warnings: [...request.lost, ...(takesMessages ? [] : request.lostInMessages), ...warnings]
    }))
  return new Map([...makes].map(([name, make]) => [name, make(warning, dependencies)]))
}

/** Writes the answer and returns the usage, which is metered even if writing fails. An answer without pictures counts none. */
const written = (call: Call, made: GeneratedPictures, write: Effect.Effect<void, JobError>) => {
  const usage = toUsage(made)
  return Effect.as(PaidParts.after(call, made.pictures.length === 0 ? made.usage : usage, write), usage)
}

const toUsage = ({ pictures, usage }: GeneratedPictures): Usage => ({
  inputTokens: 0,
  outputTokens: 0,
  ...usage,
  images: pictures.length
})
