package dev.nereid.distribution.parity;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.testing.ClientRequest;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceStub;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferRequest.InferInputTensor;
import inference.ModelInferRequest.InferRequestedOutputTensor;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** Runs scenarios over gRPC. It sends calls, or streams of one request, on a channel of its own. */
final class GrpcScenarios implements ScenarioClient {
    private static final long TIMEOUT_SECONDS = 60;
    /** Requests the errors of models as the status of the stream instead of a message in it. */
    private static final Metadata.Key<String> ERRORS_AS_STATUS =
            Metadata.Key.of("triton_grpc_error", Metadata.ASCII_STRING_MARSHALLER);
    /** Marks the last response of a request; sent only over gRPC. */
    private static final String FINAL = "triton_final_response";

    private final ManagedChannel channel;
    private final boolean stream;

    /**
     * Creates a client.
     *
     * @param channel where; ended with this
     * @param stream whether each request is sent in a stream
     */
    GrpcScenarios(ManagedChannel channel, boolean stream) {
        this.channel = channel;
        this.stream = stream;
    }

    @Override
    public Outcome run(Scenario scenario) throws InterruptedException {
        OutcomeListener listener = new OutcomeListener();
        Metadata headers = new Metadata();
        headers.put(ERRORS_AS_STATUS, "true");
        GRPCInferenceServiceStub stub = GRPCInferenceServiceGrpc.newStub(channel)
                .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers))
                .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        if (stream) {
            StreamObserver<ModelInferRequest> requests = stub.modelStreamInfer(listener.ofStream());
            requests.onNext(request(scenario));
            requests.onCompleted();
        } else {
            stub.modelInfer(request(scenario), listener);
        }
        return listener.await();
    }

    @Override
    public void end() throws InterruptedException {
        channel.shutdownNow().awaitTermination(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    private static ModelInferRequest request(Scenario scenario) {
        ModelInferRequest.Builder request = ModelInferRequest.newBuilder()
                .setModelName(scenario.request().model())
                .setModelVersion(scenario.request().version())
                .setId(scenario.request().id());
        scenario.request().parameters().forEach((key, value) -> request.putParameters(key, parameter(value)));
        for (ClientRequest.Input input : scenario.request().inputs()) {
            request.addInputs(InferInputTensor.newBuilder()
                    .setName(input.name())
                    .setDatatype(input.datatype())
                    .addAllShape(input.shape()));
            request.addRawInputContents(ByteString.copyFrom(input.data()));
        }
        for (Scenario.Output selected : scenario.request().outputs()) {
            InferRequestedOutputTensor.Builder output =
                    InferRequestedOutputTensor.newBuilder().setName(selected.name());
            if (selected.classes() > 0) {
                output.putParameters("classification", parameter(selected.classes()));
            }
            request.addOutputs(output);
        }
        return request.build();
    }

    private static InferParameter parameter(Object value) {
        return switch (value) {
            case Boolean bool -> InferParameter.newBuilder().setBoolParam(bool).build();
            case Long number ->
                InferParameter.newBuilder().setInt64Param(number).build();
            case Double number ->
                InferParameter.newBuilder().setDoubleParam(number).build();
            default ->
                InferParameter.newBuilder().setStringParam(value.toString()).build();
        };
    }

    /** Collects the outcome. Written by one thread at a time, read after the end. */
    private static final class OutcomeListener implements StreamObserver<ModelInferResponse> {
        private final List<Outcome.Response> responses = new ArrayList<>();
        private final AtomicReference<Status> end = new AtomicReference<>(Status.OK);
        private final AtomicReference<String> refusal = new AtomicReference<>("");
        private final CountDownLatch ended = new CountDownLatch(1);

        @Override
        public void onNext(ModelInferResponse response) {
            List<Outcome.Output> outputs = new ArrayList<>();
            for (int i = 0; i < response.getOutputsCount(); i++) {
                ModelInferResponse.InferOutputTensor output = response.getOutputs(i);
                outputs.add(new Outcome.Output(
                        output.getName(),
                        output.getDatatype(),
                        output.getShapeList(),
                        response.getRawOutputContents(i)));
            }
            Map<String, String> parameters = new TreeMap<>();
            response.getParametersMap().forEach((key, value) -> parameters.put(key, text(value)));
            parameters.remove(FINAL);
            responses.add(new Outcome.Response(
                    response.getModelName(), response.getModelVersion(), response.getId(), parameters, outputs));
        }

        @Override
        public void onError(Throwable error) {
            end.set(Status.fromThrowable(error));
            ended.countDown();
        }

        @Override
        public void onCompleted() {
            ended.countDown();
        }

        StreamObserver<ModelStreamInferResponse> ofStream() {
            OutcomeListener listener = this;
            return new StreamObserver<>() {
                @Override
                public void onNext(ModelStreamInferResponse response) {
                    if (response.getErrorMessage().isEmpty()) {
                        listener.onNext(response.getInferResponse());
                    } else {
                        refusal.set(response.getErrorMessage());
                    }
                }

                @Override
                public void onError(Throwable error) {
                    listener.onError(error);
                }

                @Override
                public void onCompleted() {
                    listener.onCompleted();
                }
            };
        }

        Outcome await() throws InterruptedException {
            if (!ended.await(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
                throw new AssertionError("no end within " + TIMEOUT_SECONDS + " s");
            }
            Status status = end.get();
            if (!refusal.get().isEmpty() && status.isOk()) {
                return new Outcome.Refused("", refusal.get());
            }
            return status.isOk()
                    ? new Outcome.Completed(responses)
                    : new Outcome.Refused(status.getCode().name(), "" + status.getDescription());
        }

        private static String text(InferParameter value) {
            return switch (value.getParameterChoiceCase()) {
                case BOOL_PARAM -> Boolean.toString(value.getBoolParam());
                case INT64_PARAM -> Long.toString(value.getInt64Param());
                case UINT64_PARAM -> Long.toUnsignedString(value.getUint64Param());
                case DOUBLE_PARAM -> Double.toString(value.getDoubleParam());
                case STRING_PARAM, PARAMETERCHOICE_NOT_SET -> value.getStringParam();
            };
        }
    }
}
