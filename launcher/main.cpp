#include "launcher/program.h"

int main(int count, char** arguments) { return lockstep::run_program(count, arguments); }
