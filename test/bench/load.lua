-- What wrk sends in a round, and the round's result as one line of JSON. LOAD_FILE has a line for each request, of key, tab
-- and body, which are sent in turn.
local requests = {}
local last = 0

function init()
  wrk.headers["content-type"] = "application/json"
  for line in io.lines(os.getenv("LOAD_FILE")) do
    local key, body = line:match("^([^\t]*)\t(.*)$")
    wrk.headers["authorization"] = "Bearer " .. key
    requests[#requests + 1] = wrk.format("POST", nil, nil, body)
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"answers":%d,"failures":%d,"seconds":%.6f,"p50Millis":%.3f,"p99Millis":%.3f}',
    summary.requests,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    summary.duration / 1e6,
    latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3
  ))
end
