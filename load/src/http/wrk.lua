-- What wrk runs: sends the prepared views in turn, and prints what it measured as a line of JSON.
-- The file of views comes in ONETRIP_VIEWS: on each line a token, a tab and the body of a request.

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init()
  requests, turn = {}, 0
  for line in io.lines(os.getenv("ONETRIP_VIEWS")) do
    local token, body = line:match("^(%S+)\t(.+)$")
    local headers = {
      ["Authorization"] = "Bearer " .. token,
      ["Content-Type"] = "application/json",
    }
    requests[#requests + 1] = wrk.format("POST", "/views", headers, body)
  end
  statuses = {}
  cpuBefore = os.clock()
  io.stderr:write("wrk is ready\n")
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function response(status)
  statuses[status] = (statuses[status] or 0) + 1
end

local function object(fields)
  local parts = {}
  for name, value in pairs(fields) do
    parts[#parts + 1] = string.format('"%s":%s', name, value)
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

function done(summary, latency)
  local cpuSeconds = os.clock() - threads[1]:get("cpuBefore")
  local counts = {}
  for index = 1, #latency do
    counts[index] = string.format("[%d,%d]", latency(index))
  end
  print(object({
    microseconds = summary.duration,
    answers = summary.requests,
    cpuSeconds = cpuSeconds,
    statuses = object(threads[1]:get("statuses")),
    failures = object(summary.errors),
    latencies = "[" .. table.concat(counts, ",") .. "]",
  }))
end
