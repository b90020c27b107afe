package dev.nereid.server.classification;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.TensorLease;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeResponse;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class ClassifyingObserverTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory(1_000);

    private final RecordedResponses responses = new RecordedResponses();
    private int cancelled;

    @Test
    void replacesTheOutputsThatAreToBeReplacedInEveryResponse() {
        ClassifyingObserver observer = observer(RequestedOutput.classified("A", 2), RequestedOutput.of("B"));
        FakeResponse first = FakeResponse.of(false, floats("A", 1, 3, 2), floats("B", 7));
        FakeResponse last = FakeResponse.of(true, floats("B", 8), floats("A", 5));

        observer.onResponse(first);
        observer.onResponse(last);

        assertThat(responses.texts("A"))
                .containsExactly(List.of("3.000000:1:b", "2.000000:2"), List.of("5.000000:0:a"));
        assertThat(responses.responses).extracting(InferResponse::isFinal).containsExactly(false, true);
        assertThat(responses.responses.getFirst().outputs().get(1))
                .isSameAs(first.outputs().get(1));
        assertThat(memory.buffersInUse()).isEqualTo(2);
        assertThat(first.timesClosed()).isZero();
        responses.responses.forEach(InferResponse::close);
        responses.responses.forEach(InferResponse::close);
        assertThat(first.timesClosed() + last.timesClosed()).isEqualTo(2);
        assertThat(cancelled).isZero();
    }

    @Test
    void worksLongSoThatNoSubmittingThreadClassifies() {
        assertThat(observer(RequestedOutput.classified("A", 1)).isLong()).isTrue();
    }

    @Test
    void leasesClassesAndOtherOutputs() {
        ClassifyingObserver observer = observer(RequestedOutput.classified("A", 2), RequestedOutput.of("B"));
        FakeResponse original = FakeResponse.of(true, floats("A", 1, 3, 2), floats("B", 7));
        observer.onResponse(original);
        InferResponse response = responses.responses.getFirst();

        TensorLease classes = response.lease(0);
        TensorLease other = response.lease(1);
        response.close();

        assertThat(original.timesClosed()).isEqualTo(1);
        assertThat(classes.tensor().strings()).containsExactly("3.000000:1:b", "2.000000:2");
        assertThat(other.tensor()).isSameAs(original.outputs().get(1).tensor());
        assertThatIllegalStateException().isThrownBy(() -> response.lease(0));
        classes.close();
        classes.close();
        other.close();
        assertThat(memory.buffersInUse()).isZero();
    }

    @Test
    void failsARequestThatCannotBeClassifiedAndCancelsItsExecution() {
        ClassifyingObserver observer = observer(RequestedOutput.classified("A", 1_000_000));
        FakeResponse tooLong = FakeResponse.of(false, floats("A", new float[100]));
        FakeResponse later = FakeResponse.of(true, floats("A", 1));

        observer.onResponse(tooLong);
        observer.onResponse(later);
        observer.onCompleted();
        observer.onError(new InferenceException(ErrorCode.CANCELLED, "cancelled"));

        assertThat(responses.responses).isEmpty();
        assertThat(responses.errors).extracting(InferenceException::code).containsExactly(ErrorCode.UNAVAILABLE);
        assertThat(responses.ends).isZero();
        assertThat(tooLong.timesClosed() + later.timesClosed()).isEqualTo(2);
        assertThat(cancelled).isEqualTo(1);
    }

    @Test
    void cancelsARequestThatFailedBeforeItsHandleWasSet() {
        ClassifyingObserver observer =
                new ClassifyingObserver(classifier(), List.of(RequestedOutput.classified("A", 1_000_000)), responses);

        observer.onResponse(FakeResponse.of(false, floats("A", new float[100])));
        observer.attach(() -> cancelled++);

        assertThat(cancelled).isEqualTo(1);
    }

    @Test
    void refusesItemsOfMoreThanAMillionElements() {
        ClassifyingObserver observer = observer(RequestedOutput.classified("A", 1));

        observer.onResponse(FakeResponse.of(true, floats("A", new float[1_000_001])));

        assertThat(responses.errors).singleElement().satisfies(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(error).hasMessage("classification output tensor too large");
        });
        assertThat(cancelled).isZero();
    }

    @Test
    void findsNoClassesAmongNoElements() {
        ClassifyingObserver observer = observer(RequestedOutput.classified("A", 3));

        observer.onResponse(FakeResponse.of(true, floats("A")));

        NamedTensor output = responses.responses.getFirst().outputs().getFirst();
        assertThat(output.tensor().shape()).isEqualTo(Shape.of(0));
        assertThat(output.tensor().byteSize()).isZero();
        responses.responses.getFirst().close();
    }

    @Test
    void passesOnCompletionAndErrors() {
        observer(RequestedOutput.classified("A", 3)).onCompleted();
        observer(RequestedOutput.classified("A", 3)).onError(new InferenceException(ErrorCode.INTERNAL, "no"));
        observer(RequestedOutput.classified("A", 3))
                .onFailedResponse(new InferenceException(ErrorCode.INTERNAL, "not this one"));

        assertThat(responses.failedResponses)
                .singleElement()
                .satisfies(error -> assertThat(error).hasMessage("not this one"));
        assertThat(responses.ends).isEqualTo(1);
        assertThat(responses.errors)
                .singleElement()
                .satisfies(error -> assertThat(error).hasMessage("no"));
    }

    private ClassifyingObserver observer(RequestedOutput... outputs) {
        ClassifyingObserver observer = new ClassifyingObserver(classifier(), List.of(outputs), responses);
        observer.attach(() -> cancelled++);
        return observer;
    }

    private Classifier classifier() {
        ModelSettings model = ModelSettings.builder("m", 1)
                .output(TensorSpec.of("A", DataType.FP32, Shape.of(-1)))
                .output(TensorSpec.of("B", DataType.FP32, Shape.of(-1)))
                .build();
        return new Classifier(model, Map.of("A", List.of("a", "b", "")), memory);
    }

    private static NamedTensor floats(String name, float... values) {
        return new NamedTensor(
                name,
                Tensor.of(
                        DataType.FP32,
                        Shape.of(values.length),
                        Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, values)));
    }

    /** Records the notifications of the caller. */
    private static final class RecordedResponses implements ResponseObserver {
        private final List<InferResponse> responses = new ArrayList<>();
        private final List<InferenceException> errors = new ArrayList<>();
        private final List<InferenceException> failedResponses = new ArrayList<>();
        private int ends;

        @Override
        public void onFailedResponse(InferenceException error) {
            failedResponses.add(error);
        }

        @Override
        public void onResponse(InferResponse response) {
            responses.add(response);
        }

        @Override
        public void onCompleted() {
            ends++;
        }

        @Override
        public void onError(InferenceException error) {
            errors.add(error);
        }

        List<List<String>> texts(String name) {
            return responses.stream()
                    .flatMap(response -> response.outputs().stream())
                    .filter(output -> output.name().equals(name))
                    .map(output -> output.tensor().strings())
                    .toList();
        }
    }
}
