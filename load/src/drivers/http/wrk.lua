-- What wrk runs: sends the prepared requests in turn, and prints at the end what it counted as a line of
-- JSON. The file ONETRIP_REQUESTS has the requests: on each line a method, a path, a body (or nothing) and
-- headers, separated by tabs.

local thread

function setup(only)
  thread = only
end

function init()
  requests, turn = {}, 0
  for line in io.lines(os.getenv("ONETRIP_REQUESTS")) do
    local method, path, body, rest = line:match("^(%u+)\t(%S+)\t([^\t]*)(.*)$")
    local headers = {}
    for name, value in rest:gmatch("\t([^:]+): ([^\t]*)") do
      headers[name] = value
    end
    requests[#requests + 1] = wrk.format(method, path, headers, body ~= "" and body or nil)
  end
  statuses = {}
  cpuBefore = os.clock()
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

function done(summary)
  summary.errors.status = nil -- statuses has them
  print(object({
    microseconds = summary.duration,
    answers = summary.requests,
    cpuSeconds = os.clock() - thread:get("cpuBefore"),
    statuses = object(thread:get("statuses")),
    failures = object(summary.errors),
  }))
end
