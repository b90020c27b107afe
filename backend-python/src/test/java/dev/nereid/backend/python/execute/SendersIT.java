package dev.nereid.backend.python.execute;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.ReceivedResponses;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of response senders, of models that run code of the test. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class SendersIT {
    private static final String DECOUPLED = "model_transaction_policy { decoupled: true }";
    private static final String CLOSED = "Unable to send response. Response sender has been closed.";
    private static final String ONE =
            "Unable to send response. Non-decoupled model cannot send more than one response.";

    private PythonServer server;

    @BeforeAll
    void start() {
        server = PythonServer.builder()
                .model("scripted", PythonServer.SCRIPTED_CONFIG, PythonServer.SCRIPTED)
                .model("streams", PythonServer.SCRIPTED_CONFIG + DECOUPLED, PythonServer.SCRIPTED)
                .model(
                        "stream_batches",
                        PythonServer.SCRIPTED_CONFIG + DECOUPLED + "max_batch_size: 8 dynamic_batching {"
                                + " preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 60000000 }",
                        PythonServer.SCRIPTED)
                .start();
    }

    @AfterAll
    void close() {
        if (server != null) {
            server.close();
        }
    }

    private static String text(ModelResponse response) {
        return response.requireOutput("OUT").strings().getFirst();
    }

    private List<String> texts(String model, String code) {
        return server.send(server.code(model, code)).all().stream()
                .map(SendersIT::text)
                .toList();
    }

    /** Runs a statement that raises; a response then says what. */
    private String refused(String model, String before, String statement) {
        texts(model, """
                s = requests[0].get_response_sender()
                assert s is requests[0].get_response_sender()
                self.said = "nothing"
                %s
                try:
                    %s
                except pb.TritonModelException as e:
                    self.said = str(e)
                if self.said.endswith("sending a response.") or not %s:
                    s.send(out("x"), 1)
                return [None] if "%s" != "streams" else None
                """.formatted(before, statement, before.contains("send") ? "True" : "False", model));
        String said = model.equals("streams")
                ? "requests[0].get_response_sender().send(out(self.said), 1)"
                : "return [out(self.said)]";
        return texts(model, said).getFirst();
    }

    @ParameterizedTest
    @ValueSource(strings = {"scripted", "streams"})
    void refusesWrongUsesOfASender(String model) {
        assertThat(refused(model, "", "s.send(out('a'), 2)"))
                .isEqualTo("Unable to send response. Unsupported flag provided.");
        assertThat(refused(model, "", "s.send(out('a'), flags=-1)"))
                .isEqualTo("Unable to send response. Unsupported flag provided.");
        assertThat(refused(model, "", "s.send()"))
                .isEqualTo("Inference Response object must be provided when the response flags is set to zero.");
        assertThat(refused(model, "", "s.send(None, 0)"))
                .isEqualTo("Inference Response object must be provided when the response flags is set to zero.");
    }

    @Test
    void keepsTheRulesOfAStream() {
        assertThat(refused("streams", "s.send(out('a'), 1)", "s.send(out('b'))"))
                .isEqualTo(CLOSED);
        assertThat(refused("streams", "s.send(flags=1)", "s.send(flags=1)")).isEqualTo(CLOSED);
        assertThat(refused("streams", "s.send(out('a')); s.send(flags=1)", "s.send(out('b'), 1)"))
                .isEqualTo(CLOSED);
    }

    @Test
    void keepsTheRulesOfOneResponse() {
        assertThat(refused("scripted", "s.send(out('a'), 1)", "s.send(out('b'))"))
                .isEqualTo(ONE);
        assertThat(refused("scripted", "s.send(out('a'), 1)", "s.send(flags=1)"))
                .isEqualTo(CLOSED);
        assertThat(refused("scripted", "s.send(out('a')); s.send(flags=1)", "s.send(flags=1)"))
                .isEqualTo(CLOSED);
        assertThat(refused("scripted", "s.send(out('a'))", "s.send(out('b'), 1)"))
                .isEqualTo(ONE);
        assertThat(refused("scripted", "", "s.send(flags=1)"))
                .isEqualTo("Unable to send response. Non-decoupled model cannot send complete final before sending a"
                        + " response.");
    }

    @Test
    void refusesTheSenderOfARequestOfTheModel() {
        assertThat(server.runText("""
                r = pb.InferenceRequest(model_name="scripted", inputs=[], requested_output_names=[])
                try:
                    r.get_response_sender().send(out("a"), 1)
                except pb.TritonModelException as e:
                    return [out(str(e))]
                """))
                .isEqualTo("Unable to send response. Response sender has no reference to the decoupled state of the"
                        + " model.");
    }

    @Test
    void answersByASenderOfAModelThatIsNotDecoupled() {
        assertThat(texts("scripted", """
                s = requests[0].get_response_sender()
                s.send(out("now"))
                s.send(flags=1)
                return [None]
                """)).containsExactly("now");
        assertThat(texts("scripted", """
                s = requests[0].get_response_sender()
                threading.Timer(0.05, lambda: s.send(out("later"), 1)).start()
                return [None]
                """)).containsExactly("later");
        assertThat(texts("scripted", """
                s = requests[0].get_response_sender()
                threading.Timer(0.05, lambda: s.send(out("after None"), 1)).start()
                """)).containsExactly("after None");
        assertThat(texts("scripted", """
                requests[0].get_response_sender().send(out("sent"), 1)
                return [out("returned")]
                """)).containsExactly("sent");
        assertThat(texts("scripted", """
                s = requests[0].get_response_sender()
                self.kept = [s]
                return [out("returned")]
                """)).containsExactly("returned");
        assertThat(server.runText("""
                try:
                    self.kept.pop().send(out("late"), 1)
                    return [out("sent")]
                except pb.TritonModelException as e:
                    return [out(str(e))]
                """)).isIn("sent", CLOSED, ONE);
    }

    @Test
    void sendsErrorsBetweenResponses() {
        ReceivedResponses received = server.send(server.code("streams", """
                s = requests[0].get_response_sender()
                s.send(out("a"))
                s.send(pb.InferenceResponse(error=pb.TritonError("oops", pb.TritonError.NOT_FOUND)))
                s.send(out("b"))
                s.send(flags=1)
                """));
        assertThat(received.all()).extracting(SendersIT::text).containsExactly("a", "b");
        assertThat(received.failed()).hasSize(1);
        assertThat(received.failed().getFirst()).hasMessage("oops");
        assertThat(received.failed().getFirst().code()).isEqualTo(ErrorCode.NOT_FOUND);
    }

    @Test
    void sendsNoResponseAtAll() {
        assertThat(texts("streams", "requests[0].get_response_sender().send(flags=1)"))
                .isEmpty();
    }

    @Test
    void sendsOutOfOrderFromThreads() {
        List<ReceivedResponses> sent = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            ModelRequest request = server.request("stream_batches")
                    .id("r" + i)
                    .input("CODE", Shape.of(1, 1), PythonServer.program("""
                            def answer(r, s, n):
                                for i in range(n):
                                    s.send(out(f"{r} {i}"))
                                s.send(flags=1)
                            senders = [(r.request_id(), r.get_response_sender()) for r in reversed(requests)]
                            for r, s in senders:
                                s.send(out(r + " early"))
                            for i, (r, s) in enumerate(senders):
                                threading.Thread(target=answer, args=(r, s, 50 * i)).start()
                            """));
            sent.add(server.send(request));
        }
        for (int i = 0; i < 4; i++) {
            int request = i;
            List<String> expected = new ArrayList<>(List.of("r" + i + " early"));
            IntStream.range(0, 50 * (3 - i)).forEach(n -> expected.add("r" + request + " " + n));
            assertThat(sent.get(i).all()).extracting(SendersIT::text).isEqualTo(expected);
        }
    }

    @Test
    void sendsResponsesOfOneRequestFromManyThreads() {
        List<String> texts = texts("streams", """
                s = requests[0].get_response_sender()
                def answer(i):
                    for j in range(100):
                        s.send(out(f"{i} {j}"))
                threads = [threading.Thread(target=answer, args=(i,)) for i in range(16)]
                for t in threads: t.start()
                for t in threads: t.join()
                s.send(flags=1)
                """);
        assertThat(texts).hasSize(1600).doesNotHaveDuplicates();
        for (int i = 0; i < 16; i++) {
            String prefix = i + " ";
            assertThat(texts.stream()
                            .filter(text -> text.startsWith(prefix))
                            .map(text -> text.substring(prefix.length())))
                    .isEqualTo(
                            IntStream.range(0, 100).mapToObj(Integer::toString).toList());
        }
    }

    @ParameterizedTest
    @CsvSource({"20000, 1", "1000, 20000"})
    void sendsManyResponses(int count, int size) {
        AtomicInteger next = new AtomicInteger();
        CompletableFuture<Integer> end = new CompletableFuture<>();
        server.code("streams", """
                s = requests[0].get_response_sender()
                for i in range(%d):
                    s.send(out(np.full(%d, i, dtype=np.int32)))
                s.send(flags=1)
                """.formatted(count, size)).send(new Observer(end) {
            @Override
            public void onResponse(ModelResponse response) {
                try (response) {
                    int[] values = response.requireOutput("OUT").ints();
                    assertThat(values).hasSize(size);
                    assertThat(values[0]).isEqualTo(next.getAndIncrement());
                    assertThat(values[size - 1]).isEqualTo(values[0]);
                } catch (AssertionError e) {
                    end.completeExceptionally(e);
                }
            }
        });
        end.orTimeout(60, java.util.concurrent.TimeUnit.SECONDS).join();
        assertThat(next).hasValue(count);
    }

    /** Completes a result at the end of a request. */
    private abstract static class Observer implements ModelResponseObserver {
        private final CompletableFuture<Integer> end;

        Observer(CompletableFuture<Integer> end) {
            this.end = end;
        }

        @Override
        public void onCompleted() {
            end.complete(1);
        }

        @Override
        public void onError(BackendException error) {
            end.completeExceptionally(error);
        }
    }

    /** The client is not ready until the test opens it. */
    private static final class Gate extends Observer {
        private final AtomicInteger received = new AtomicInteger();
        private final AtomicReference<Runnable> action = new AtomicReference<>();
        private volatile boolean isOpen;

        Gate(CompletableFuture<Integer> end) {
            super(end);
        }

        @Override
        public void onResponse(ModelResponse response) {
            received.incrementAndGet();
            response.close();
        }

        @Override
        public boolean isReady() {
            return isOpen;
        }

        @Override
        public void onReady(Runnable ready) {
            action.set(ready);
            if (isOpen) {
                run();
            }
        }

        void open() {
            isOpen = true;
            run();
        }

        private void run() {
            Runnable ready = action.getAndSet(null);
            if (ready != null) {
                ready.run();
            }
        }
    }

    @Test
    void waitsInSendForASlowClient() {
        CompletableFuture<Integer> end = new CompletableFuture<>();
        Gate gate = new Gate(end);
        server.code("streams", """
                s = requests[0].get_response_sender()
                self.sent = 0
                def answer():
                    for i in range(1000):
                        s.send(out(np.zeros(100_000, dtype=np.float32)))
                        self.sent = i + 1
                    s.send(flags=1)
                threading.Thread(target=answer).start()
                """).send(gate);
        String count = "requests[0].get_response_sender().send(out(str(self.sent)), 1)";
        AtomicReference<String> last = new AtomicReference<>("");
        PythonServer.await("a sender that waits", () -> {
            String now = texts("streams", count).getFirst();
            return now.equals(last.getAndSet(now)) && Integer.parseInt(now) >= 8;
        });
        int sent = Integer.parseInt(last.get());
        assertThat(sent).isBetween(8, 16);
        assertThat(texts("streams", count)).containsExactly(last.get());
        assertThat(end).isNotDone();
        gate.open();
        end.orTimeout(60, java.util.concurrent.TimeUnit.SECONDS).join();
        assertThat(gate.received).hasValue(1000);
    }

    /** The window of a stream follows the size of its responses, up and down. */
    @Test
    void sendsResponsesOfAllSizesInTurns() {
        AtomicInteger next = new AtomicInteger();
        CompletableFuture<Integer> end = new CompletableFuture<>();
        server.code("streams", """
                s = requests[0].get_response_sender()
                sizes = [1] * 200 + [5_000_000] * 20 + [1000] * 200 + [1_000_000] * 40 + [1] * 100 + [2_000_000, 1] * 30
                for i, n in enumerate(sizes):
                    s.send(out(np.full(n, i, dtype=np.int32)))
                s.send(flags=1)
                """).send(new Observer(end) {
            @Override
            public void onResponse(ModelResponse response) {
                try (response) {
                    assertThat(response.requireOutput("OUT").ints()[0]).isEqualTo(next.getAndIncrement());
                } catch (AssertionError e) {
                    end.completeExceptionally(e);
                }
            }
        });
        end.orTimeout(60, java.util.concurrent.TimeUnit.SECONDS).join();
        assertThat(next).hasValue(620);
    }

    @Test
    void showsCancellationToRequestAndSender() {
        for (String watched : List.of("r", "s")) {
            ModelRequest request = server.code("streams", """
                    r, s = requests[0], requests[0].get_response_sender()
                    def answer():
                        s.send(out("started"))
                        begin = time.time()
                        while not %s.is_cancelled() and time.time() < begin + 50:
                            time.sleep(0.001)
                        self.seen = s.is_cancelled() and r.is_cancelled() and time.time() < begin + 40
                        s.send(out("more"))
                        s.send(flags=1)
                    assert not r.is_cancelled() and not s.is_cancelled()
                    self.seen = None
                    threading.Thread(target=answer).start()
                    """.formatted(watched));
            ReceivedResponses received = server.send(request);
            received.await(1);
            request.cancel();
            assertThat(received.error().code()).isEqualTo(ErrorCode.CANCELLED);
            PythonServer.await(
                    "cancellation",
                    () -> texts("streams", "requests[0].get_response_sender().send(out(str(self.seen)), 1)")
                            .getFirst()
                            .equals("True"));
        }
    }

    @Test
    void showsCancellationWithinExecute() {
        ModelRequest request = server.code("scripted", """
                begin = time.time()
                self.seen = "waits"
                while not requests[0].is_cancelled() and time.time() < begin + 50:
                    time.sleep(0.001)
                self.seen = str(requests[0].is_cancelled())
                return [out("x")]
                """);
        ReceivedResponses received = server.send(request);
        request.cancel();
        assertThat(received.error().code()).isEqualTo(ErrorCode.CANCELLED);
        assertThat(server.runText("return [out(getattr(self, 'seen', 'never'))]"))
                .isIn("True", "never");
        ModelRequest second = server.code("scripted", """
                open("%s", "w").close()
                begin = time.time()
                while not requests[0].is_cancelled() and time.time() < begin + 50:
                    time.sleep(0.001)
                self.seen = str(requests[0].is_cancelled())
                return [out("x")]
                """.formatted(marker()));
        ReceivedResponses answer = server.send(second);
        PythonServer.await("execution", () -> java.nio.file.Files.exists(java.nio.file.Path.of(marker())));
        second.cancel();
        assertThat(answer.error().code()).isEqualTo(ErrorCode.CANCELLED);
        assertThat(server.runText("return [out(self.seen)]")).isEqualTo("True");
    }

    private static String marker() {
        return System.getProperty("java.io.tmpdir") + "/nereid-senders-"
                + ProcessHandle.current().pid();
    }

    /** A sender that waits for a client that has gone is let go. */
    @Test
    void endsAWaitForAClientThatHasGone() {
        CompletableFuture<Integer> end = new CompletableFuture<>();
        Gate gate = new Gate(end);
        ModelRequest request = server.code("streams", """
                s = requests[0].get_response_sender()
                self.left = None
                def answer():
                    for i in range(500):
                        s.send(out(np.zeros(100_000, dtype=np.float32)))
                    self.left = s.is_cancelled()
                    s.send(flags=1)
                threading.Thread(target=answer).start()
                """);
        request.send(gate);
        PythonServer.await("responses", () -> gate.received.get() > 0);
        request.cancel();
        PythonServer.await(
                "end of the sender",
                () -> texts("streams", "requests[0].get_response_sender().send(out(str(self.left)), 1)")
                        .getFirst()
                        .equals("True"));
        assertThat(end.handle((value, e) -> e).join()).isInstanceOf(BackendException.class);
    }
}
