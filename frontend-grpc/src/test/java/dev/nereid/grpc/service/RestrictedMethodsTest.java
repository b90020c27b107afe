package dev.nereid.grpc.service;

import static org.assertj.core.api.Assertions.assertThat;

import inference.GRPCInferenceServiceGrpc;
import io.grpc.MethodDescriptor;
import org.junit.jupiter.api.Test;

/** Tests the API groups of methods. */
final class RestrictedMethodsTest {
    @Test
    void assignsEveryMethodToAGroup() {
        for (MethodDescriptor<?, ?> method :
                GRPCInferenceServiceGrpc.getServiceDescriptor().getMethods()) {
            assertThat(RestrictedMethods.group(method.getFullMethodName()))
                    .as(method.getFullMethodName())
                    .isPresent();
        }
        assertThat(RestrictedMethods.group("grpc.health.v1.Health/Watch")).isPresent();
        assertThat(RestrictedMethods.group("grpc.reflection.v1.ServerReflection/ServerReflectionInfo"))
                .isEmpty();
        assertThat(RestrictedMethods.group("odd")).isEmpty();
    }
}
