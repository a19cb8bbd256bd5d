/** The catalogue of simulated workers: models whose providers are simulated, too. */
import { Layer, Schema } from "effect"
import { Catalogue, type Snapshot } from "../../../shared/catalogue/Catalogue.ts"
import { Model } from "../../../shared/catalogue/Model.ts"
import { Provider } from "../../../shared/catalogue/Provider.ts"

const provider = Schema.decodeUnknownSync(Provider)
const model = Schema.decodeUnknownSync(Model)

/** Makes a catalogue of these parts of a catalogue file. */
export const layerOf = (
  providers: Readonly<Record<string, unknown>>,
  models: Readonly<Record<string, unknown>>
): Layer.Layer<Catalogue> => {
  const snapshot: Snapshot = {
    providers: new Map(Object.entries(providers).map(([name, value]) => [name, provider(value)])),
    models: new Map(Object.entries(models).map(([name, value]) => [name, model(value)]))
  }
  return Layer.succeed(Catalogue, { current: () => snapshot })
}
