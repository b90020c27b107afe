package dev.nereid.testkit.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.spi.function.AsyncTensorFunction;
import dev.nereid.spi.function.TensorFunction;
import dev.nereid.testkit.FakeModelRequest;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Backends that call other models are tested with models of the test. */
final class CalledModelsTest {
    private static final ModelSettings SETTINGS = ModelSettings.builder("greet", 1)
            .maxBatchSize(4)
            .input(TensorSpec.of("NAME", DataType.BYTES, Shape.of(1)))
            .output(TensorSpec.of("TEXT", DataType.BYTES, Shape.of(1)))
            .build();

    private static final CheckedContract.Check EACH = BackendContract::respondsToEachRequest;

    @TempDir
    private Path cache;

    private static Map<String, Tensor> greeting(Map<String, Tensor> inputs) {
        String name = inputs.get("NAME").strings().getFirst();
        if (name.isEmpty()) {
            throw new BackendException(ErrorCode.INVALID_ARGUMENT, "NAME: empty");
        }
        return Map.of("GREETING", text("hello " + name));
    }

    private static void greet(FakeModelRequest request) {
        try {
            request.respond(greeting(request.inputs()));
            request.complete();
        } catch (BackendException e) {
            request.fail(e);
        }
    }

    private static ContractModel model() {
        return ContractModel.of(SETTINGS)
                .with(greeted("Ada"))
                .with(greeted("Bob"))
                .with(ContractExample.request().input("NAME", text("")).failure("NAME: empty"));
    }

    private static ContractExample greeted(String name) {
        return ContractExample.request().input("NAME", text(name)).output("TEXT", text("hello " + name));
    }

    private static Tensor text(String text) {
        return Tensor.ofStrings(Shape.of(1, 1), List.of(text));
    }

    /** An action of a function with the response of the called model. */
    private interface Receiver {
        void accept(InferenceRequest request, ModelResponse response);
    }

    private static BackendProvider calling(String called, Receiver receiver) {
        return new AsyncTensorFunction() {
            @Override
            public String name() {
                return "greet";
            }

            @Override
            public CompletionStage<?> apply(InferenceRequest request, ModelContext model) {
                return model.models()
                        .request(called)
                        .onBehalfOf(request)
                        .input("NAME", request.requireInput("NAME"))
                        .send()
                        .thenAccept(response -> receiver.accept(request, response));
            }
        };
    }

    private static BackendProvider right() {
        return calling("greeting", (request, response) -> {
            try (response) {
                request.response().put("TEXT", response.requireOutput("GREETING"), response.lease("GREETING"));
            }
        });
    }

    @Nested
    final class OfFunctions extends BackendContract {
        @Override
        protected BackendProvider provider() {
            return right();
        }

        @Override
        protected ContractModel model() {
            return CalledModelsTest.model().withModels(Map.of("greeting", CalledModelsTest::greeting));
        }
    }

    @Nested
    final class OfAResponder extends BackendContract {
        @Override
        protected BackendProvider provider() {
            return right();
        }

        @Override
        protected ContractModel model() {
            return CalledModelsTest.model().withModels(CalledModelsTest::greet, "greeting");
        }
    }

    @Test
    void namesTheModelOfAResponseThatIsNotClosed() {
        BackendProvider forgetful = calling(
                "greeting",
                (request, response) -> request.response()
                        .put(
                                "TEXT",
                                text(response.requireOutput("GREETING")
                                        .strings()
                                        .getFirst())));
        ContractModel model = model().withModels(Map.of("greeting", CalledModelsTest::greeting));

        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(() -> EACH.run(new CheckedContract(forgetful, model.withCache(cache))))
                .withMessage("a response of model 'greeting' was not closed (expected: ModelResponse.close, such as by"
                        + " try-with-resources)");
    }

    @Test
    void findsAnOutputWhoseLeaseDoesNotEnd() {
        BackendProvider forgetful = calling("greeting", (request, response) -> {
            try (response) {
                Tensor greeting = response.requireOutput("GREETING");
                Runnable forgotten = response.lease("GREETING");
                request.response()
                        .put("TEXT", greeting, () -> assertThat(forgotten).isNotNull());
            }
        });
        ContractModel model = model().withModels(Map.of("greeting", CalledModelsTest::greeting));

        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(() -> EACH.run(new CheckedContract(forgetful, model.withCache(cache))))
                .withMessageContaining("buffers not closed");
    }

    @Test
    void failsRequestsToModelsThatItDoesNotHave() {
        ContractModel model = model().withModels(Map.of("greeting", CalledModelsTest::greeting));
        try (LocalModel local = LocalModel.load(calling("other", (request, response) -> response.close()), model)) {
            BackendException failure = local.infer(greeted("Ada")).failure().orElseThrow();

            assertThat(failure.code()).isEqualTo(ErrorCode.NOT_FOUND);
            assertThat(failure).hasMessage("Request for unknown model: 'other' is not found");
        }
    }

    @Test
    void failsRequestsWithTheFaultOfAFunction() {
        ContractModel model = model().withModels(Map.of("greeting", inputs -> {
            assertThat(inputs).containsOnlyKeys("OTHER");
            return inputs;
        }));
        try (LocalModel local = LocalModel.load(right(), model)) {
            BackendException failure = local.infer(greeted("Ada")).failure().orElseThrow();

            assertThat(failure.code()).isEqualTo(ErrorCode.INTERNAL);
            assertThat(failure).hasMessageContaining("model 'greeting' of the test: ");
            assertThat(failure).hasMessageContaining("OTHER");
        }
    }

    @Test
    void modelsAreReadyWhileABackendIsLoaded() {
        TensorFunction waits = new TensorFunction() {
            @Override
            public String name() {
                return "greet";
            }

            @Override
            public TensorFunction open(ModelContext model) {
                assertThat(model.models().isReady("greeting")).isTrue();
                assertThat(model.models().isReady("other")).isFalse();
                return this;
            }

            @Override
            public void apply(InferenceRequest request, ModelContext model) {
                request.response().put("TEXT", request.requireInput("NAME"));
            }
        };
        ContractModel model = model().withModels(Map.of("greeting", CalledModelsTest::greeting));
        try (LocalModel local = LocalModel.load(waits, model)) {
            assertThat(local.infer(greeted("Ada")).failure()).isEmpty();
        }
    }
}
