/** Starts a worker of the embeddings workload. */
import * as Service from "../../shared/process/Service.ts"
import * as EmbeddingsService from "./EmbeddingsService.ts"

Service.run("embeddings", EmbeddingsService.layer)
