/** Finds the models of an AI SDK package, in every version of the specification that the gateway supports. */
import type {
  EmbeddingModelV4,
  Experimental_VideoModelV4,
  ImageModelV4,
  LanguageModelV4,
  RerankingModelV4,
  SharedV4ProviderOptions,
  SpeechModelV4,
  TranscriptionModelV4
} from "@ai-sdk/provider"
import { Effect, Predicate } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import * as Json from "../../json/Json.ts"
import type { Endpoint } from "../../transport/Endpoint.ts"
import { notSupported, type Served } from "../../call/Protocol.ts"
import { ask, isMarked } from "./AiSdkCall.ts"
import type { Opened } from "./AiSdkPackage.ts"

/** A model of any version. The gateway calls older models through the part of version 4's interface that they implement. */
type Model<V4> = Omit<V4, "specificationVersion"> & { readonly specificationVersion: "v2" | "v3" | "v4" }

interface Models {
  readonly language: Model<LanguageModelV4>
  readonly image: Model<ImageModelV4>
  readonly embedding: Model<EmbeddingModelV4>
  readonly reranking: Model<RerankingModelV4>
  readonly speech: Model<SpeechModelV4>
  readonly transcription: Model<TranscriptionModelV4>
  readonly video: Model<Required<Pick<Experimental_VideoModelV4, "doStart" | "doStatus">> & Experimental_VideoModelV4>
}

interface Kind {
  /** Names of the package's function that makes such a model, the newest first. */
  readonly makers: ReadonlyArray<string>
  readonly versions: ReadonlyArray<string>
  /** The methods that the gateway calls. */
  readonly methods: ReadonlyArray<string>
}

const kinds: Record<keyof Models, Kind> = {
  // version 2 has other forms of usage and of the finish reason
  language: { makers: ["languageModel", "chat"], versions: ["v3", "v4"], methods: ["doStream"] },
  image: { makers: ["imageModel", "image"], versions: ["v2", "v3", "v4"], methods: ["doGenerate"] },
  embedding: { makers: ["embeddingModel", "textEmbeddingModel"], versions: ["v2", "v3", "v4"], methods: ["doEmbed"] },
  reranking: { makers: ["rerankingModel", "reranking"], versions: ["v3", "v4"], methods: ["doRerank"] },
  speech: { makers: ["speechModel", "speech"], versions: ["v2", "v3", "v4"], methods: ["doGenerate"] },
  transcription: {
    makers: ["transcriptionModel", "transcription"],
    versions: ["v2", "v3", "v4"],
    methods: ["doGenerate"]
  },
  // a model that makes a video in one call cannot be resumed after a lost worker, and would be paid for twice
  video: { makers: ["videoModel", "video"], versions: ["v4"], methods: ["doStart", "doStatus"] }
}

const isModel = <K extends keyof Models>(kind: K, value: unknown): value is Models[K] => {
  const { methods, versions } = kinds[kind]
  return Predicate.hasProperty(value, "specificationVersion") &&
    versions.includes(String(value.specificationVersion)) &&
    methods.every((name) => Predicate.isFunction(Reflect.get(value, name)))
}

/** The endpoint's model of this kind. Fails if the package has none. */
export const modelOf = <K extends keyof Models>(
  kind: K,
  { provider, secrets }: Opened,
  endpoint: Endpoint,
  served: Served
): Effect.Effect<Models[K], JobError> => {
  const maker = kinds[kind].makers
    .map((name) => Predicate.hasProperty(provider, name) ? provider[name] : undefined)
    .find(Predicate.isFunction)
  if (maker === undefined) return notSupported(served)
  const made = ask({ endpoint, secrets }, async (): Promise<unknown> => {
    try {
      return Reflect.apply(maker, provider, [endpoint.model])
    } catch (error) {
      if (isMarked(error, "AI_NoSuchModelError")) return undefined
      throw error
    }
  })
  return Effect.filterOrElse(made, (model) => isModel(kind, model), () => notSupported(served))
}

/** The package's own options: those of the catalogue, and the client's fields that the gateway does not know. */
export const providerOptions = (
  { options }: Opened,
  model: { readonly provider: string },
  extra: Readonly<Record<string, unknown>>
): SharedV4ProviderOptions => {
  // `fal.image` reads its options under `fal`
  const name = model.provider.split(".")[0] ?? model.provider
  const all = { ...options.providerOptions, [name]: { ...options.providerOptions?.[name], ...extra } }
  // plain JSON values: both were parsed, from YAML and from JSON
  return all as SharedV4ProviderOptions
}

/** The features that a model does not support, by the package's warnings. */
export const lostFeatures = (warnings: ReadonlyArray<unknown> = []): ReadonlyArray<string> =>
  warnings.flatMap((warning) => {
    const { feature: newer, setting: older, type } = Json.fields(warning)
    if (!String(type).startsWith("unsupported")) return []
    const feature = newer ?? older
    return typeof feature === "string" && /^\w[\w .-]{0,60}$/.test(feature) ? [feature] : []
  })
