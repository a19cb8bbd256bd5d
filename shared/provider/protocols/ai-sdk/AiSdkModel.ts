/** The models that a package of the AI SDK offers, of every version of its specification that the gateway speaks. */
import type {
  EmbeddingModelV4,
  Experimental_VideoModelV4,
  ImageModelV4,
  LanguageModelV4,
  RerankingModelV4,
  SharedV4ProviderOptions,
  SpeechModelV4
} from "@ai-sdk/provider"
import { Effect, Predicate } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import type { Endpoint } from "../../transport/Endpoint.ts"
import { notSupported, type Served } from "../../call/Protocol.ts"
import { attempt, isMarked } from "./AiSdkCall.ts"
import type { Opened } from "./AiSdkPackage.ts"

/** Older models are used as those of version 4, of which they have a part. */
type Model<V4> = Omit<V4, "specificationVersion"> & { readonly specificationVersion: "v2" | "v3" | "v4" }

interface Models {
  readonly language: Model<LanguageModelV4>
  readonly image: Model<ImageModelV4>
  readonly embedding: Model<EmbeddingModelV4>
  readonly reranking: Model<RerankingModelV4>
  readonly speech: Model<SpeechModelV4>
  readonly video: Model<Required<Pick<Experimental_VideoModelV4, "doStart" | "doStatus">> & Experimental_VideoModelV4>
}

interface Kind {
  /** The provider's functions that make such a model, the newest name first. */
  readonly makers: ReadonlyArray<string>
  readonly versions: ReadonlyArray<string>
  /** What of it is called. */
  readonly methods: ReadonlyArray<string>
}

const kinds: Record<keyof Models, Kind> = {
  // the usage and the end of an answer are of another form in version 2
  language: { makers: ["languageModel", "chat"], versions: ["v3", "v4"], methods: ["doStream"] },
  image: { makers: ["imageModel", "image"], versions: ["v2", "v3", "v4"], methods: ["doGenerate"] },
  embedding: {
    makers: ["embeddingModel", "textEmbeddingModel"],
    versions: ["v2", "v3", "v4"],
    methods: ["doEmbed"]
  },
  reranking: { makers: ["rerankingModel", "reranking"], versions: ["v3", "v4"], methods: ["doRerank"] },
  speech: { makers: ["speechModel", "speech"], versions: ["v2", "v3", "v4"], methods: ["doGenerate"] },
  // one that only makes a video in one go could not be gone on with, and would be paid for again
  video: { makers: ["videoModel", "video"], versions: ["v4"], methods: ["doStart", "doStatus"] }
}

const isModel = <K extends keyof Models>(kind: K, value: unknown): value is Models[K] => {
  const { methods, versions } = kinds[kind]
  return Predicate.hasProperty(value, "specificationVersion") &&
    versions.includes(String(value.specificationVersion)) &&
    methods.every((name) => Predicate.isFunction(Reflect.get(value, name)))
}

/** The model of that kind and of the endpoint's name. Fails where the package has none. */
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
  const made = attempt({ endpoint, secrets }, async (): Promise<unknown> => {
    try {
      return Reflect.apply(maker, provider, [endpoint.model])
    } catch (error) {
      if (isMarked(error, "AI_NoSuchModelError")) return undefined
      throw error
    }
  })
  return Effect.filterOrElse(made, (model) => isModel(kind, model), () => notSupported(served))
}

/** Options of the package's own: those of the catalogue, and what the client says that the gateway does not know. */
export const providerOptions = (
  { options }: Opened,
  model: { readonly provider: string },
  extra: Readonly<Record<string, unknown>>
): SharedV4ProviderOptions => {
  // `fal.image` looks for its options under `fal`
  const name = model.provider.split(".")[0] ?? model.provider
  const all = { ...options.providerOptions, [name]: { ...options.providerOptions?.[name], ...extra } }
  // the one came from a YAML file and the other from JSON
  return all as SharedV4ProviderOptions
}

/** What of a request a package says that its model does not take, under the names of the request's own fields. */
export const lostFields = (
  warnings: ReadonlyArray<unknown> | undefined,
  pathOf: (feature: string) => string
): ReadonlyArray<string> => lostFeatures(warnings).map(pathOf)

/** The same under the SDK's own names. */
export const lostFeatures = (warnings: ReadonlyArray<unknown> | undefined): ReadonlyArray<string> =>
  (warnings ?? []).flatMap((warning) => {
    if (!Predicate.hasProperty(warning, "type") || !String(warning.type).startsWith("unsupported")) return []
    const feature = Predicate.hasProperty(warning, "feature")
      ? warning.feature
      : Predicate.hasProperty(warning, "setting")
      ? warning.setting
      : undefined
    return typeof feature === "string" && /^\w[\w .-]{0,60}$/.test(feature) ? [feature] : []
  })
