/*
 * A member of an election as mooon's CZookeeperHelper::race_master and its sample make one, on the C client:
 *
 *     race-master ADDRESS PATH ID SESSION_MS LOG
 *
 * It creates an ephemeral node at PATH with its id as data. When the node is there, it tries again every second.
 * When it has won, it waits for two seconds, "to let the old master quit", and then works for as long as its session
 * has not expired by its own estimate. That estimate is theirs: whole seconds, from when the client says CONNECTING.
 *
 * Commands come as lines on standard input, and each is answered with one; README.md in
 * packages/incumbent/test-integration/zookeeper-interop says which. Ends with its input.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zookeeper/zookeeper.h>

enum { poll_ms = 1000, delay_after_win_ms = 2000, beat_ms = 5, look_ms = 2 };

static const char *address, *path, *id;
static int session_ms, log_fd;

static zhandle_t *handle;
static atomic_bool is_in;
/* When the client said CONNECTING, in whole seconds by the wall clock. 0: it is connected. */
static atomic_long connecting_since;
static atomic_bool is_expired;
static pthread_mutex_t speaking = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *line) {
  /* Two threads speak. */
  pthread_mutex_lock(&speaking);
  printf("%s\n", line);
  fflush(stdout);
  pthread_mutex_unlock(&speaking);
}

static void pause_ms(long ms) {
  struct timespec span = {ms / 1000, (ms % 1000) * 1000000};
  while (nanosleep(&span, &span) != 0) {
  }
}

/* Pauses in small steps, and ends early when this member is to leave. */
static void pause_while_in(long ms) {
  for (long left = ms; left > 0 && is_in; left -= look_ms) pause_ms(look_ms);
}

static void on_event(zhandle_t *zh, int type, int state, const char *at, void *context) {
  (void)zh, (void)at, (void)context;
  if (type != ZOO_SESSION_EVENT) return;
  if (state == ZOO_CONNECTED_STATE) connecting_since = 0;
  else if (state == ZOO_CONNECTING_STATE) connecting_since = time(NULL);
  else if (state == ZOO_EXPIRED_SESSION_STATE) is_expired = true;
}

static bool is_session_expired(void) {
  if (is_expired) return true;
  const long since = connecting_since;
  return since != 0 && time(NULL) - since > session_ms / 1000 - 1;
}

static void open_session(void) {
  is_expired = false;
  connecting_since = 0;
  handle = zookeeper_init(address, on_event, session_ms, NULL, NULL, 0);
  if (handle == NULL) {
    say("failed to make a handle");
    exit(1);
  }
  while (zoo_state(handle) != ZOO_CONNECTED_STATE) pause_ms(look_ms);
}

static void close_session(void) {
  zookeeper_close(handle);
  handle = NULL;
}

static bool race_master(void) {
  return zoo_create(handle, path, id, (int)strlen(id), &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0) == ZOK;
}

static void work(void) {
  struct Stat stat;
  char line[512];
  if (zoo_exists(handle, path, 0, &stat) != ZOK) return;
  snprintf(line, sizeof line, "leading %" PRId64, stat.czxid);
  say(line);
  const char *kind = "start";
  while (is_in && !is_session_expired()) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t at = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    const int length = snprintf(line, sizeof line, "%" PRId64 " %s %d %d %" PRId64 " %s\n", stat.czxid, id, getpid(),
                                getpid(), at, kind);
    if (write(log_fd, line, (size_t)length) != length) exit(1);
    kind = "beat";
    pause_ms(beat_ms);
  }
  say("ended");
}

static void *run(void *nothing) {
  while (is_in) {
    if (is_session_expired()) {
      close_session();
      open_session();
    }
    if (race_master()) {
      pause_while_in(delay_after_win_ms);
      if (is_in) work();
    } else {
      pause_while_in(poll_ms);
    }
  }
  return nothing;
}

int main(int count, char **words) {
  if (count != 6) return 64;
  address = words[1], path = words[2], id = words[3], session_ms = atoi(words[4]);
  log_fd = open(words[5], O_WRONLY | O_APPEND);
  zoo_set_debug_level((ZooLogLevel)0);
  open_session();
  say("ready");
  pthread_t thread;
  char command[64];
  while (fgets(command, sizeof command, stdin) != NULL) {
    command[strcspn(command, "\n")] = '\0';
    if (strcmp(command, "join") == 0) {
      if (handle == NULL) open_session();
      is_in = true;
      if (pthread_create(&thread, NULL, run, NULL) != 0) return 1;
      say("joined");
    } else if (strcmp(command, "resign") == 0) {
      is_in = false;
      pthread_join(thread, NULL);
      /* As the end of their program does: the node goes with the session, at once. */
      close_session();
      say("resigned");
    }
  }
  /* Without a word to the server: the session runs out, as when it is killed. */
  _exit(0);
}
