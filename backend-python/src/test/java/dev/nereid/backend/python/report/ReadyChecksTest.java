package dev.nereid.backend.python.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.FakeModelContext;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ReadyChecksTest {
    private final FakeClock clock = new FakeClock();
    private final FakeDelays delays = new FakeDelays(clock);
    private final FakeModelContext context =
            new FakeModelContext(ModelSettings.builder("m", 1).build(), Path.of("m"));
    private final ProcessLog log = new ModelLog(context, clock, delays).process("m_0");
    private final SentFrames sent = new SentFrames();
    private final ReadyChecks checks = new ReadyChecks("m_0", true, sent, log, Runnable::run, delays, clock);

    private static FrameReader ready(int flags, long id, String text, String trace) {
        return SentFrames.frame(
                FrameType.READY, flags, id, body -> body.text(text).text(trace));
    }

    private long called() {
        return sent.next(FrameType.CHECK_READY).id();
    }

    private static String outcome(CompletionStage<Void> stage) {
        var future = stage.toCompletableFuture();
        if (!future.isDone()) {
            return "open";
        }
        return future.handle((_, failure) -> failure == null
                        ? "ready"
                        : failure instanceof BackendException e ? e.code() + " " + e.getMessage() : failure.toString())
                .join();
    }

    @Test
    void isReadyWhenTheModelSaysSo() {
        var check = checks.check();
        assertThat(outcome(check)).isEqualTo("open");

        checks.onReady(ready(1, called(), "", ""));

        assertThat(outcome(check)).isEqualTo("ready");
    }

    @Test
    void isNotReadyWhenTheModelSaysSo() {
        var check = checks.check();
        checks.onReady(ready(0, called(), "", ""));

        assertThat(outcome(check)).isEqualTo("UNAVAILABLE Model 'm_0' is not ready (user-defined check failed).");
    }

    @Test
    void failsWithTheErrorOfTheModelAndLogsItOnce() {
        for (int i = 0; i < 3; i++) {
            var check = checks.check();
            checks.onReady(ready(2, called(), "ValueError: no", "Traceback: no"));
            assertThat(outcome(check)).isEqualTo("INTERNAL ValueError: no");
        }
        assertThat(context.logger().lines()).containsExactly("ERROR [python m_0] is_ready failed: Traceback: no");

        checks.check();
        checks.onReady(ready(1, called(), "", ""));
        checks.check();
        checks.onReady(ready(2, called(), "is_ready() must return a boolean value", ""));
        assertThat(context.logger().lines())
                .hasSize(2)
                .endsWith("ERROR [python m_0] is_ready failed: is_ready() must return a boolean value");
    }

    @Test
    void sharesOneResultAmongChecksAtTheSameTime() {
        var first = checks.check();
        var second = checks.check();
        long id = called();
        assertThat(sent.isEmpty()).isTrue();

        checks.onReady(ready(1, id, "", ""));

        assertThat(outcome(first)).isEqualTo("ready");
        assertThat(outcome(second)).isEqualTo("ready");
    }

    @Test
    void callersCannotCompleteTheResultOfOthers() {
        var first = checks.check();
        var second = checks.check();

        first.toCompletableFuture().cancel(true);

        assertThat(outcome(second)).isEqualTo("open");
    }

    @Test
    void failsAfterFiveSecondsAndWaitsForTheCallInProgress() {
        var first = checks.check();
        long id = called();
        delays.advance(Duration.ofMillis(4999));
        assertThat(outcome(first)).isEqualTo("open");
        delays.advance(Duration.ofMillis(1));
        assertThat(outcome(first)).isEqualTo("UNAVAILABLE Timed out waiting for user-defined is_ready() response");

        var second = checks.check();
        delays.advance(Duration.ofSeconds(5));
        assertThat(outcome(second)).isEqualTo("UNAVAILABLE Timed out waiting for in-flight is_ready() response");

        var third = checks.check();
        assertThat(sent.isEmpty()).isTrue();
        checks.onReady(ready(1, id, "", ""));
        assertThat(outcome(third)).isEqualTo("ready");
    }

    @Test
    void aLateResultIsNotThatOfTheNextCall() {
        checks.check();
        long first = called();
        delays.advance(Duration.ofSeconds(5));
        checks.onReady(ready(0, first, "", ""));

        var next = checks.check();
        long second = called();

        assertThat(outcome(next)).isEqualTo("open");
        assertThat(second).isNotEqualTo(first);
        checks.onReady(ready(1, second, "", ""));
        assertThat(outcome(next)).isEqualTo("ready");
    }

    @Test
    void oneTimerServesManyChecks() {
        for (int i = 0; i < 100; i++) {
            checks.check();
            checks.onReady(ready(1, called(), "", ""));
            delays.advance(Duration.ofMillis(30));
            assertThat(delays.size()).isEqualTo(1);
        }
        var late = checks.check();
        delays.advance(Duration.ofMillis(4999));
        assertThat(outcome(late)).isEqualTo("open");
        delays.advance(Duration.ofMillis(2));
        assertThat(outcome(late)).startsWith("UNAVAILABLE Timed out");
        assertThat(delays.size()).isZero();
    }

    @Test
    void startsATimerAgainWhenOneIsLost() {
        checks.check();
        checks.onReady(ready(1, called(), "", ""));
        delays.lose();
        clock.advance(Duration.ofSeconds(7));

        var check = checks.check();
        delays.advance(Duration.ofSeconds(5));

        assertThat(outcome(check)).startsWith("UNAVAILABLE Timed out");
    }

    @Test
    void failsWhenTheProcessEnds() {
        var open = checks.check();
        long id = called();

        checks.close("Stub process 'm_0' is not healthy.");
        checks.close("again");

        assertThat(outcome(open)).isEqualTo("UNAVAILABLE Stub process 'm_0' is not healthy.");
        assertThat(outcome(checks.check())).isEqualTo("UNAVAILABLE Stub process 'm_0' is not healthy.");
        checks.onReady(ready(1, id, "", ""));
        assertThat(sent.isEmpty()).isTrue();
    }

    @Test
    void isReadyAtOnceWithoutAFunction() {
        ReadyChecks none = new ReadyChecks("m_0", false, sent, log, Runnable::run, delays, clock);

        assertThat(outcome(none.check())).isEqualTo("ready");
        assertThat(sent.isEmpty()).isTrue();
        none.close("gone");
        assertThat(outcome(none.check())).isEqualTo("UNAVAILABLE gone");
    }

    @Test
    void completesWhenTheExecutorRefuses() {
        ReadyChecks refused = new ReadyChecks(
                "m_0",
                true,
                sent,
                log,
                _ -> {
                    throw new RejectedExecutionException();
                },
                delays,
                clock);
        var check = refused.check();

        refused.onReady(ready(1, called(), "", ""));

        assertThat(outcome(check)).isEqualTo("ready");
    }

    @Test
    void completesByTheExecutorOfTheModel() throws Exception {
        ReadyChecks real = ReadyChecks.of("m_0", true, sent, log, context, System::nanoTime);
        var check = real.check();

        real.onReady(ready(1, called(), "", ""));

        assertThat(check.toCompletableFuture().get(60, TimeUnit.SECONDS)).isNull();
    }

    @Test
    void refusesMalformedFrames() {
        assertThatThrownBy(() -> checks.onReady(ready(1, 1, "", "")))
                .isInstanceOf(FrameException.class)
                .hasMessage("id of is_ready: 1 (expected: none, since no call is in progress)");
        var check = checks.check();
        long id = called();
        assertThatThrownBy(() -> checks.onReady(ready(1, id + 1, "", "")))
                .isInstanceOf(FrameException.class)
                .hasMessage("id of is_ready: 2 (expected: that of the call, 1)");
        assertThatThrownBy(() -> checks.onReady(ready(3, id, "", "")))
                .isInstanceOf(FrameException.class)
                .hasMessage("result of is_ready: 3 (expected: 0 to 2)");
        assertThatThrownBy(() -> checks.onReady(SentFrames.frame(
                        FrameType.READY, 1, id, body -> body.text("").u32(100))))
                .isInstanceOf(FrameException.class)
                .hasMessageStartingWith("text for the log of is_ready:");
        assertThat(outcome(check)).isEqualTo("open");
    }

    @Test
    void cutsLongTexts() {
        var check = checks.check();
        checks.onReady(ready(2, called(), "ü".repeat(100_000), "t".repeat(1_000_000)));

        assertThat(outcome(check)).startsWith(ErrorCode.INTERNAL + " ü").endsWith("ü … (134464 more bytes)");
        assertThat(context.logger().lines()).singleElement().asString().endsWith("t … (737856 more bytes)");
    }
}
