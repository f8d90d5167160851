//! Runs redis-rs like load/clients/support/run.ts runs the clients for Node.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult, pipe};
use serde_json::Value;
use std::io::stdin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const DEADLINE: Duration = Duration::from_secs(10); // the default of 500 ms would end a run on a busy machine

async fn view(redis: &mut MultiplexedConnection, id: &str, item: &str) -> RedisResult<String> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis() as f64
        / 1000.0;
    let viewed = format!("viewed:{id}");
    let (user,) = pipe()
        .cmd("ZADD")
        .arg("recent:")
        .arg("XX")
        .arg(now)
        .arg(id)
        .ignore()
        .zadd(&viewed, item, now)
        .ignore()
        .zremrangebyrank(&viewed, 0, -26)
        .ignore()
        .zincr("viewed:", item, -1)
        .ignore()
        .hget("login:", id)
        .query_async(redis)
        .await?;
    Ok(user)
}

/// Returns the latencies of all calls. Each caller is a task.
async fn call_for(
    redis: &MultiplexedConnection,
    plan: &'static Value,
    seconds: &Value,
) -> Vec<Duration> {
    let until = Instant::now() + Duration::from_secs_f64(seconds.as_f64().unwrap());
    let (sessions, items) = (
        plan["sessions"].as_array().unwrap(),
        plan["items"].as_array().unwrap(),
    );
    let callers: Vec<_> = sessions
        .iter()
        .enumerate()
        .map(|(index, session)| {
            let (mut redis, mut at) = (redis.clone(), index * items.len() / sessions.len());
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                let mut begun = Instant::now();
                loop {
                    let item = items[at % items.len()].as_str().unwrap();
                    let user = view(&mut redis, session["id"].as_str().unwrap(), item)
                        .await
                        .unwrap();
                    assert_eq!(user, session["user"], "the user of the session");
                    let end = Instant::now();
                    latencies.push(end - begun);
                    if end >= until {
                        return latencies;
                    }
                    (begun, at) = (end, at + 1);
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for caller in callers {
        all.append(&mut caller.await.unwrap());
    }
    all
}

fn line() -> Value {
    let mut line = String::new();
    stdin().read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

async fn run() {
    let plan: &'static Value = Box::leak(Box::new(line()));
    let client = Client::open(plan["url"].as_str().unwrap()).unwrap();
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(DEADLINE));
    let redis = client
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .unwrap();

    println!(
        "{{\"views\":{}}}",
        call_for(&redis, plan, &plan["warmUp"]).await.len()
    );
    line();
    let mut latencies = call_for(&redis, plan, &plan["seconds"]).await;
    println!("{{\"views\":{}}}", latencies.len());
    line();
    latencies.sort();
    let milliseconds = |share: f64| {
        latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0
    };
    println!(
        "{{\"p50\":{},\"p99\":{}}}",
        milliseconds(0.5),
        milliseconds(0.99)
    );
    stdin().read_line(&mut String::new()).unwrap();
}

fn main() {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(run());
}
