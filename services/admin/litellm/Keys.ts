/**
 * Converts LiteLLM's keys. LiteLLM and the gateway both store the SHA-256 of a secret, so clients keep their secrets.
 */
import type { NewKey } from "../../../shared/keys/ApiKey.ts"
import { Allowances } from "./Allowances.ts"
import type { Dump } from "./Dump.ts"
import { nameOf } from "./Tables.ts"
import { teamOf, type Teams } from "./Teams.ts"

export interface ImportedKey {
  readonly fingerprint: string
  readonly settings: NewKey
}

const isFingerprint = (token: string): boolean => /^[0-9a-f]{64}$/.test(token)

/** Keys of LiteLLM's console, which last for a day. */
const consoleTeam = "litellm-dashboard"

export const importKeys = (
  dump: Dump,
  accessGroups: ReadonlyMap<string, ReadonlyArray<string>>,
  teams: Teams
): ReadonlyArray<ImportedKey> => {
  const allowances = new Allowances("LiteLLM_VerificationToken", dump, accessGroups)
  const imported = dump.keys.flatMap((row): ReadonlyArray<ImportedKey> => {
    const name = nameOf.LiteLLM_VerificationToken(row)
    const omit = allowances.omitFor(name)
    if (row.team_id === consoleTeam) {
      omit("team_id", "not imported: it belongs to LiteLLM's console")
      return []
    }
    if (!isFingerprint(row.token)) {
      omit("token", "not imported: it is not the SHA-256 hash of a key")
      return []
    }
    const team = teamOf(teams, row, omit)
    const { isClosed, settings } = allowances.of(row, omit)
    const disabled = row.blocked === true || isClosed || team?.isClosed === true
    return [{
      fingerprint: row.token,
      settings: {
        name,
        ...settings,
        ...(team === undefined ? {} : { team: team.id }),
        ...(row.expires === undefined ? {} : { expiresAt: row.expires }),
        ...(disabled ? { disabled } : {})
      }
    }]
  })
  allowances.reportSpend()
  return imported
}
