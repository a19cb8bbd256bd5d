/** The most memory that this process may have, in bytes: its container's limit, or what the machine has. */
import { totalmem } from "node:os"

// without a limit the system says none, or one that no machine has
export const memoryLimit = (): number => Math.min(process.constrainedMemory() || Infinity, totalmem())
