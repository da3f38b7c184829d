-- What wrk sends, and what it prints at the end: one line of JSON.
-- Arguments: GET, or PUT and the name of the run.
local method, run, count = "GET", "", 0
local filler = string.rep("0123456789abcdef", 64)

function init(args)
  method, run = args[1] or "GET", args[2] or ""
end

function request()
  if method == "GET" then
    return wrk.format("GET")
  end
  count = count + 1
  local mark = string.format("%s-%d", run, count)
  local path, query = wrk.path:match("^([^?]*)(.*)$")
  return wrk.format("PUT", path .. mark .. query, nil, mark .. filler:sub(#mark + 1))
end

function done(summary, latency, requests)
  local errors = summary.errors
  print(string.format(
    '{"rate": %f, "p50_ms": %f, "p99_ms": %f, "errors": %d, "bytes": %d, "requests": %d}',
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    errors.status + errors.connect + errors.read + errors.write + errors.timeout,
    summary.bytes, summary.requests))
end
