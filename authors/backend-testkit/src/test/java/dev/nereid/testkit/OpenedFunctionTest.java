package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.spi.function.AsyncTensorFunction;
import dev.nereid.spi.function.StreamingFunction;
import dev.nereid.spi.function.TensorFunction;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests functions that are opened for each model, and closed with it. */
final class OpenedFunctionTest {
    private static final Path DIRECTORY = Path.of("m");

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final List<String> calls = new ArrayList<>();

    @Test
    void serveOneModelEach() throws Exception {
        Backend backend = backend(new Greeting(calls));
        Model one = backend.load(context("one"));
        Model two = backend.load(context("two"));

        assertThat(List.of(execute(one), execute(two), execute(one)))
                .containsExactly("hello from one", "hello from two", "hello from one");
        one.close();
        assertThat(execute(two)).isEqualTo("hello from two");
        two.close();

        assertThat(calls).containsExactly("open one", "open two", "close one", "close two");
    }

    @Test
    void mayBeLambdas() throws Exception {
        Model model = backend(new Named() {
                    @Override
                    public TensorFunction open(ModelContext model) {
                        String text = "lambda of " + model.settings().name();
                        return (request, context) -> respond(request, text);
                    }
                })
                .load(context("m"));

        assertThat(execute(model)).isEqualTo("lambda of m");
        model.close();
    }

    @Test
    void haveTheNameOfTheFunctionThatOpenedThem() {
        Model model = backend(new Named() {
                    @Override
                    public TensorFunction open(ModelContext model) {
                        return (request, context) -> {
                            throw new IllegalStateException("a bug");
                        };
                    }
                })
                .load(context("m"));
        FakeRequest request = new FakeRequest(1, List.of("OUT")).withResponse(memory);
        try (FakeBatch batch = new FakeBatch(settings("m"), memory, request)) {
            model.newInstance(new FakeInstanceContext("m_0_0")).execute(batch);

            assertThat(request.failure().orElseThrow())
                    .hasMessage("model 'm': backend 'named' failed: java.lang.IllegalStateException: a bug");
        }
    }

    @Test
    void failTheirRequestAloneByACheckedException() {
        Model model = backend(new Named() {
                    @Override
                    public TensorFunction open(ModelContext model) {
                        return (request, context) -> {
                            if (request.id().equals("1")) {
                                throwUnchecked(new IOException("disk"));
                            }
                            respond(request, "ok");
                        };
                    }
                })
                .load(context("m"));
        FakeRequest one = new FakeRequest(1, List.of("OUT")).withId("1").withResponse(memory);
        FakeRequest two = new FakeRequest(1, List.of("OUT")).withId("2").withResponse(memory);
        try (FakeBatch batch = new FakeBatch(settings("m"), memory, one, two)) {
            model.newInstance(new FakeInstanceContext("m_0_0")).execute(batch);

            assertThat(one.failure().orElseThrow())
                    .hasMessage("model 'm': backend 'named' failed: java.io.IOException: disk");
            assertThat(two.failure()).isEmpty();
        }
    }

    /** Throws as code of another language may. */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void throwUnchecked(Throwable thrown) throws E {
        throw (E) thrown;
    }

    @Test
    void areNotClosedIfTheyAreTheFunctionItself() {
        Model model = backend(new Named()).load(context("m"));

        model.close(); // which would call the close of a function that has one
        assertThat(calls).isEmpty();
    }

    @Test
    void failTheLoadWithTheirError() {
        BackendException error = new BackendException(ErrorCode.NOT_FOUND, "vocab.txt: not found");

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> backend(new Named() {
                            @Override
                            public TensorFunction open(ModelContext model) {
                                throw error;
                            }
                        })
                        .load(context("m")))
                .isSameAs(error);
    }

    @Test
    void areMissing() {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> backend(new Named() {
                            @Override
                            @SuppressWarnings("NullAway") // the mistake
                            public TensorFunction open(ModelContext model) {
                                return null;
                            }
                        })
                        .load(context("m")))
                .withMessage("model 'm': backend 'named': open returned null (expected: a function)");
    }

    @Test
    void cannotBeClosedIfAllModelsShareThem() {
        String message =
                "model 'm': backend 'named': close() is never called, since open() returns the function that all"
                        + " models share (expected: an open() that returns a new object for each model)";
        for (Named function : List.of(
                new Named() {
                    @Override
                    public void close() {
                        calls.add("close");
                    }
                },
                new Named() {
                    @Override
                    public TensorFunction open(ModelContext model) {
                        calls.add("open");
                        return this;
                    }

                    @Override
                    public void close() {
                        calls.add("close");
                    }
                })) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> backend(function).load(context("m")))
                    .withMessage(message);
        }
        assertThat(calls).containsExactly("open");
    }

    @Test
    void completeByTheModel() {
        Backend backend = backend(new Named() {
            @Override
            public ModelCompletion completion(ModelContext model) {
                return ModelCompletion.EMPTY.withOutputs(
                        List.of(TensorSpec.of(model.settings().name(), DataType.BYTES, Shape.of(1))));
            }
        });

        ModelContext context =
                new FakeModelContext(ModelSettings.builder("m", 1).build(), DIRECTORY);
        assertThat(backend.complete(context).orElseThrow().outputs())
                .extracting(TensorSpec::name)
                .containsExactly("m");
    }

    @Test
    void ofAsynchronousFunctionsServeOneModelEach() throws Exception {
        AsyncTensorFunction function = new AsyncTensorFunction() {
            @Override
            public String name() {
                return "later";
            }

            @Override
            public AsyncTensorFunction open(ModelContext model) {
                String text = "later " + model.settings().name();
                return new AsyncTensorFunction() {
                    @Override
                    public CompletionStage<?> apply(InferenceRequest request, ModelContext context) {
                        respond(request, text);
                        return CompletableFuture.completedStage(null);
                    }

                    @Override
                    public void close() {
                        calls.add("close");
                    }
                };
            }

            @Override
            public CompletionStage<?> apply(InferenceRequest request, ModelContext model) {
                throw new AssertionError("not called");
            }
        };
        Model model = backend(function).load(context("m"));

        assertThat(execute(model)).isEqualTo("later m");
        model.close();
        assertThat(calls).containsExactly("close");
    }

    @Test
    void ofStreamingFunctionsServeOneModelEach() {
        StreamingFunction function = new StreamingFunction() {
            @Override
            public String name() {
                return "stream";
            }

            @Override
            public StreamingFunction open(ModelContext model) {
                return new StreamingFunction() {
                    @Override
                    public void apply(InferenceRequest request, ResponseSender sender) {
                        calls.add("apply");
                    }

                    @Override
                    public void close() {
                        calls.add("close");
                    }
                };
            }

            @Override
            public void apply(InferenceRequest request, ResponseSender sender) {
                throw new AssertionError("not called");
            }
        };
        ModelSettings settings = ModelSettings.builder("m", 1).decoupled(true).build();
        Model model = backend(function).load(new FakeModelContext(settings, DIRECTORY));
        try (FakeSender sender = new FakeSender(memory);
                FakeBatch batch = new FakeBatch(settings, memory, new FakeRequest(1, List.of()).with(sender))) {
            model.newInstance(new FakeInstanceContext("m_0_0")).execute(batch);
            assertThat(sender.hasEnded()).isTrue();
        }
        model.close();
        assertThat(calls).containsExactly("apply", "close");
    }

    private String execute(Model model) {
        FakeRequest request = new FakeRequest(1, List.of("OUT")).withResponse(memory);
        try (FakeBatch batch = new FakeBatch(settings("m"), memory, request);
                ModelInstance instance = model.newInstance(new FakeInstanceContext("m_0_0"))) {
            instance.execute(batch);
            assertThat(request.failure()).isEmpty();
            return request.outputs().get("OUT").strings().getFirst();
        }
    }

    private static void respond(InferenceRequest request, String text) {
        request.response().put("OUT", Tensor.ofStrings(Shape.of(1, 1), List.of(text)));
    }

    private static Backend backend(BackendProvider function) {
        return function.create(new FakeBackendContext(Map.of(), DIRECTORY, 1));
    }

    private static ModelContext context(String model) {
        return new FakeModelContext(settings(model), DIRECTORY);
    }

    private static ModelSettings settings(String model) {
        return ModelSettings.builder(model, 1)
                .maxBatchSize(8)
                .output(TensorSpec.of("OUT", DataType.BYTES, Shape.of(1)))
                .build();
    }

    /** A function that responds with its name. */
    private static class Named implements TensorFunction {
        @Override
        public String name() {
            return "named";
        }

        @Override
        public void apply(InferenceRequest request, ModelContext model) {
            respond(request, name());
        }
    }

    /** A function that opens objects of its own class, as the example of the SPI does. */
    private static final class Greeting implements TensorFunction {
        private final List<String> calls;
        private String model = "";

        Greeting(List<String> calls) {
            this.calls = calls;
        }

        @Override
        public String name() {
            return "greeting";
        }

        @Override
        public TensorFunction open(ModelContext context) {
            Greeting opened = new Greeting(calls);
            opened.model = context.settings().name();
            calls.add("open " + opened.model);
            return opened;
        }

        @Override
        public void apply(InferenceRequest request, ModelContext context) {
            respond(request, "hello from " + model);
        }

        @Override
        public void close() {
            calls.add("close " + model);
        }
    }
}
